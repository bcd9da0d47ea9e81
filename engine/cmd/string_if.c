/* DELEX and DELIFEQ, and the conditions that they share with SET. */
#include "base/xxh3.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/string_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* XXH3 in 16 hexadecimal digits, as DIGEST of Redis 8.4 shows it. */
enum { DIGEST_LEN = 16 };

static bool has_digest(struct rd_slice text, struct rd_slice digest)
{
    char own[DIGEST_LEN + 1];
    snprintf(own, sizeof own, "%016" PRIx64, rd_xxh3_64(text));
    return engine_arg_is(digest, own);
}

bool engine_string_judge(struct engine_call *call, const struct engine_value *v,
                         enum engine_string_if kind, struct rd_slice expected, bool *ret)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice text = engine_string_text(v, digits);
    if (kind == ENGINE_STRING_IFEQ || kind == ENGINE_STRING_IFNE) {
        *ret = rd_slice_eq(text, expected) == (kind == ENGINE_STRING_IFEQ);
        return true;
    }
    if (expected.len != DIGEST_LEN) {
        engine_reply_error(call->reply, "ERR must be exactly 16 hexadecimal characters");
        return false;
    }
    *ret = has_digest(text, expected) == (kind == ENGINE_STRING_IFDEQ);
    return true;
}

static void remove_key(struct engine_call *call, struct engine_entry *entry)
{
    struct rd_slice key = call->argv[1];
    engine_call_delete_as(call, entry, call->config->lazyfree_lazy_server_del);
    if (engine_effects_wanted(call))
        engine_effect(call, 2, (struct rd_slice[]){rd_slice_str("DEL"), key});
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
}

/* *ret: the key exists, has a string and the condition holds. False: an error was replied. */
static bool judge_key(struct engine_call *call, struct engine_entry *entry,
                      enum engine_string_if kind, struct rd_slice text, bool *ret)
{
    *ret = false;
    return entry == NULL || engine_string_judge(call, &entry->value, kind, text, ret);
}

static void delete_if(struct engine_call *call, struct engine_entry *entry,
                      enum engine_string_if kind, struct rd_slice text)
{
    bool holds;
    if (!judge_key(call, entry, kind, text, &holds))
        return;
    if (holds)
        remove_key(call, entry);
    engine_reply_int(call->reply, holds);
}

void engine_cmd_delifeq(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_call_write(call, call->argv[1], ENGINE_STRING, &entry))
        delete_if(call, entry, ENGINE_STRING_IFEQ, call->argv[2]);
}

static bool find_condition(struct rd_slice word, enum engine_string_if *ret)
{
    static const char *const words[] = {"ifeq", "ifne", "ifdeq", "ifdne"};
    for (unsigned i = 0; i < 4; i++)
        if (engine_arg_is(word, words[i])) {
            *ret = (enum engine_string_if)i;
            return true;
        }
    return false;
}

void engine_cmd_delex(struct engine_call *call)
{
    enum engine_string_if kind;
    struct engine_entry *entry = engine_call_find_write(call, call->argv[1]);
    if (call->argc == 2) {
        if (entry != NULL)
            remove_key(call, entry);
        engine_reply_int(call->reply, entry != NULL);
    } else if (call->argc != 4) {
        engine_reply_wrong_arity(call);
    } else if (entry != NULL && entry->value.type != ENGINE_STRING) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply,
                           "ERR Key should be of string type if conditions are specified");
    } else if (entry != NULL && !find_condition(call->argv[2], &kind)) {
        engine_reply_error(call->reply, "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    } else {
        delete_if(call, entry, entry != NULL ? kind : ENGINE_STRING_IFEQ, call->argv[3]);
    }
}
