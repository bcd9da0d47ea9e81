/* Prints differences, as lines of text or as JSON objects. */
#include "tools/diff/diff.h"

#include <unistd.h>

enum { LISTED = 20 /* keys of each kind on a terminal */ };

static const char *const part_words[] = {
    [RDB_PART_ELEMENT] = "element", [RDB_PART_MEMBER] = "member", [RDB_PART_FIELD] = "field",
    [RDB_PART_ENTRY] = "entry",     [RDB_PART_META] = "meta",     [RDB_PART_GROUP] = "group",
    [RDB_PART_IDMP] = "idmp"};

static bool both(const struct diff_found *found)
{
    return found->key[DIFF_A].present && found->key[DIFF_B].present;
}

/* ---- text ---- */

struct quoted {
    char s[4 * DIFF_TEXT_MAX + 16];
};

static struct quoted quote(struct rd_slice bytes, bool cut)
{
    struct quoted q;
    rd_err_quote(q.s, sizeof q.s - 4, bytes);
    if (cut)
        strcat(q.s, "...");
    return q;
}

static struct rd_shown expiry(int64_t ms)
{
    struct rd_shown none = {"none"};
    return ms == RDB_NO_EXPIRE ? none : rd_show_time(ms);
}

static void print_part(const struct diff_part *part, enum rdb_kind kind)
{
    bool a = part->present[DIFF_A], b = part->present[DIFF_B];
    printf("    %s", part_words[part->kind]);
    if (part->kind == RDB_PART_ELEMENT)
        printf(" %llu", (unsigned long long)part->index[a ? DIFF_A : DIFF_B]);
    else if (part->kind == RDB_PART_ENTRY)
        printf(" %.*s", (int)part->name.len, (const char *)part->name.ptr);
    else if (part->name.len > 0 || part->kind <= RDB_PART_FIELD)
        printf(" %s", quote(rd_buf_slice(&part->name), part->name_cut).s);
    if (a != b)
        printf(" only in %s", a ? "A" : "B");
    bool texts = kind != RDB_KIND_SET && kind != RDB_KIND_MODULE && part->kind != RDB_PART_IDMP;
    if (part->expiry_only) {
        printf(": expiry %s and %s", expiry(part->expire_ms[DIFF_A]).s,
               expiry(part->expire_ms[DIFF_B]).s);
    } else if (texts) {
        const char *link = ": ";
        for (int side = DIFF_A; side <= DIFF_B; side++) {
            if (!part->present[side])
                continue;
            printf("%s%s", link, quote(rd_buf_slice(&part->text[side]), part->text_cut[side]).s);
            link = " and ";
        }
    }
    printf("\n");
}

/* Prints both strings, or the bytes around the first difference. */
static void print_string(const struct diff_value *value)
{
    const struct diff_part *part = &value->parts[0];
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        printf("    %c: ", side == DIFF_A ? 'A' : 'B');
        if (part->index[side] > 0)
            printf("from byte %llu ", (unsigned long long)part->index[side]);
        printf("%s\n", quote(rd_buf_slice(&part->text[side]), part->text_cut[side]).s);
    }
}

static void print_value(const struct diff_tool *diff, const struct diff_found *found,
                        const struct diff_value *value)
{
    if (value == NULL) {
        printf("value");
    } else if (found->key[DIFF_A].kind == RDB_KIND_STRING) {
        printf("value: %s and %s, different from byte %llu", rd_show_bytes(value->bytes[DIFF_A]).s,
               rd_show_bytes(value->bytes[DIFF_B]).s, (unsigned long long)value->first_byte);
    } else {
        printf("value: %s and %s parts, %s different, %s only in A, %s only in B",
               rd_show_count(value->n_parts[DIFF_A]).s, rd_show_count(value->n_parts[DIFF_B]).s,
               rd_show_count(value->changed).s, rd_show_count(value->only[DIFF_A]).s,
               rd_show_count(value->only[DIFF_B]).s);
    }
    printf("\n");
    if (value == NULL || !diff->opts.values)
        return;
    if (found->key[DIFF_A].kind == RDB_KIND_STRING) {
        print_string(value);
        return;
    }
    for (size_t i = 0; i < value->n_kept; i++)
        print_part(&value->parts[i], found->key[DIFF_A].kind);
    uint64_t all = value->changed + value->only[DIFF_A] + value->only[DIFF_B];
    if (all > value->n_kept && found->key[DIFF_A].kind != RDB_KIND_STRING)
        printf("    and %s more\n", rd_show_count(all - value->n_kept).s);
}

static void print_key(const struct diff_tool *diff, const struct diff_found *found,
                      struct rd_slice name, const struct diff_value *value)
{
    const struct diff_key *a = &found->key[DIFF_A], *b = &found->key[DIFF_B];
    char quoted[1024];
    rd_err_quote(quoted, sizeof quoted, name);
    printf("db %llu, key %s: ", (unsigned long long)found->db, quoted);
    if (!both(found)) {
        const struct diff_key *key = a->present ? a : b;
        printf("only in %s, %s%s\n", a->present ? "A" : "B", rdb_kind_name(key->kind),
               diff_is_expired(&diff->filter, key) ? ", expired" : "");
        return;
    }
    const char *link = "different ";
    if ((found->flags & DIFF_TYPE) != 0) {
        printf("%stype: %s and %s", link, rdb_kind_name(a->kind), rdb_kind_name(b->kind));
        link = "; ";
    }
    if ((found->flags & DIFF_EXPIRY) != 0) {
        printf("%sexpiry: %s and %s", link, expiry(a->expire_ms).s, expiry(b->expire_ms).s);
        link = "; ";
    }
    if ((found->flags & DIFF_VALUE) == 0) {
        printf("\n");
        return;
    }
    printf("%s", link);
    print_value(diff, found, value);
}

/* ---- JSON ---- */

static void put_expiry(struct json_write *json, int64_t ms)
{
    if (ms == RDB_NO_EXPIRE)
        json_null(json);
    else
        json_int(json, ms);
}

static void put_part(struct json_write *json, const struct diff_part *part)
{
    static const char *const sides[] = {"a", "b"};
    json_obj(json);
    json_put_str(json, "part", part_words[part->kind]);
    if (part->kind == RDB_PART_ELEMENT) {
        json_put_uint(json, "index", part->index[part->present[DIFF_A] ? DIFF_A : DIFF_B]);
    } else if (part->kind != RDB_PART_META && part->kind != RDB_PART_IDMP) {
        json_key(json, "name");
        json_bytes(json, rd_buf_slice(&part->name));
        if (part->name_cut)
            json_put_bool(json, "name_cut", true);
    }
    json_put_str(json, "in",
                 part->present[DIFF_A] && part->present[DIFF_B] ? "both"
                 : part->present[DIFF_A]                        ? "a"
                                                                : "b");
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        if (!part->present[side])
            continue;
        json_key(json, sides[side]);
        json_obj(json);
        json_key(json, "text");
        json_bytes(json, rd_buf_slice(&part->text[side]));
        if (part->text_cut[side])
            json_put_bool(json, "cut", true);
        if (part->expire_ms[side] != RDB_NO_EXPIRE)
            json_put_int(json, "expire_ms", part->expire_ms[side]);
        json_end(json);
    }
    json_end(json);
}

static void put_pair(struct json_write *json, const char *key, uint64_t a, uint64_t b)
{
    json_key(json, key);
    json_array(json);
    json_uint(json, a);
    json_uint(json, b);
    json_end(json);
}

static void put_strings(struct json_write *json, const struct diff_part *part)
{
    static const char *const sides[] = {"a", "b"};
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        json_key(json, sides[side]);
        json_obj(json);
        json_put_uint(json, "from", part->index[side]);
        json_key(json, "text");
        json_bytes(json, rd_buf_slice(&part->text[side]));
        if (part->text_cut[side])
            json_put_bool(json, "cut", true);
        json_end(json);
    }
}

static void put_value(const struct diff_tool *diff, struct json_write *json, enum rdb_kind kind,
                      const struct diff_value *value)
{
    json_key(json, "value");
    json_obj(json);
    if (kind == RDB_KIND_STRING) {
        put_pair(json, "bytes", value->bytes[DIFF_A], value->bytes[DIFF_B]);
        json_put_uint(json, "first_byte", value->first_byte);
    } else {
        put_pair(json, "parts", value->n_parts[DIFF_A], value->n_parts[DIFF_B]);
        json_put_uint(json, "differ", value->changed);
        put_pair(json, "only", value->only[DIFF_A], value->only[DIFF_B]);
    }
    if (diff->opts.values && kind == RDB_KIND_STRING) {
        put_strings(json, &value->parts[0]);
    } else if (diff->opts.values) {
        json_key(json, "first");
        json_array(json);
        for (size_t i = 0; i < value->n_kept; i++)
            put_part(json, &value->parts[i]);
        json_end(json);
    }
    json_end(json);
}

static void put_differs(struct json_write *json, unsigned flags)
{
    static const char *const words[] = {"type", "expiry", "value"};
    json_key(json, "differs");
    json_array(json);
    for (unsigned i = 0; i < 3; i++)
        if ((flags & 1U << i) != 0)
            json_str(json, words[i]);
    json_end(json);
}

void diff_put_key(struct diff_tool *diff, struct json_write *json, const struct diff_found *found,
                  struct rd_slice name, const struct diff_value *value)
{
    const struct diff_key *a = &found->key[DIFF_A], *b = &found->key[DIFF_B];
    json_obj(json);
    json_put_uint(json, "db", found->db);
    json_key(json, "key");
    json_bytes(json, name);
    json_put_str(json, "in", both(found) ? "both" : a->present ? "a" : "b");
    json_key(json, "type");
    json_array(json);
    json_str(json, a->present ? rdb_kind_name(a->kind) : NULL);
    json_str(json, b->present ? rdb_kind_name(b->kind) : NULL);
    json_end(json);
    if (both(found)) {
        put_differs(json, found->flags);
        if ((found->flags & DIFF_EXPIRY) != 0) {
            json_key(json, "expire_ms");
            json_array(json);
            put_expiry(json, a->expire_ms);
            put_expiry(json, b->expire_ms);
            json_end(json);
        }
        if (value != NULL && (found->flags & DIFF_VALUE) != 0)
            put_value(diff, json, a->kind, value);
    }
    json_end(json);
}

void diff_put_summary(const struct diff_tool *diff, struct json_write *json)
{
    const struct diff_counts *n = &diff->result.counts;
    put_pair(json, "keys", n->keys[DIFF_A], n->keys[DIFF_B]);
    put_pair(json, "only", n->only[DIFF_A], n->only[DIFF_B]);
    put_pair(json, "only_expired", n->expired[DIFF_A], n->expired[DIFF_B]);
    json_put_uint(json, "different", n->different);
    json_put_uint(json, "different_type", n->type);
    json_put_uint(json, "different_expiry", n->expiry);
    json_put_uint(json, "different_value", n->value);
    put_pair(json, "functions", diff->result.n_functions[DIFF_A], diff->result.n_functions[DIFF_B]);
    if (diff->is_server[DIFF_A] || diff->is_server[DIFF_B]) {
        put_pair(json, "gone", diff->live_result[DIFF_A].gone, diff->live_result[DIFF_B].gone);
        put_pair(json, "changing", diff->live_result[DIFF_A].changing,
                 diff->live_result[DIFF_B].changing);
        put_pair(json, "not_compared", diff->live_result[DIFF_A].unknown,
                 diff->live_result[DIFF_B].unknown);
    }
    if (diff->opts.judge_due)
        json_put_uint(json, "due", diff->result.n_due);
    json_put_bool(json, "functions_differ", diff->result.functions_differ);
}

/* ---- either ---- */

void diff_report_begin(struct diff_tool *diff)
{
    if (!diff->cli->json)
        return;
    json_put_str(&diff->cli->out, "a", diff->opts.name[DIFF_A]);
    json_put_str(&diff->cli->out, "b", diff->opts.name[DIFF_B]);
    json_key(&diff->cli->out, "differences");
    json_array(&diff->cli->out);
    diff->json = diff->cli->out;
}

/* On a terminal, the first of each kind. */
static bool is_listed(struct diff_tool *diff, const struct diff_found *found)
{
    int kind = both(found) ? 2 : found->key[DIFF_A].present ? 0 : 1;
    if (diff->all || isatty(STDOUT_FILENO) != 1)
        return true;
    return diff->listed[kind]++ < LISTED;
}

void diff_report_key(struct diff_tool *diff, const struct diff_found *found, struct rd_slice name,
                     const struct diff_value *value)
{
    if (diff->page != NULL) {
        diff_page_key(diff, found, name, value);
    } else if (diff->lines) {
        json_init(&diff->json, diff->out);
        diff_put_key(diff, &diff->json, found, name, value);
        rd_sink_byte(diff->out, '\n');
    } else if (diff->cli->json) {
        diff_put_key(diff, &diff->json, found, name, value);
    } else if (!diff->cli->quiet && is_listed(diff, found)) {
        print_key(diff, found, name, value);
    }
}

/* What was not listed. */
static void print_hidden(const struct diff_tool *diff)
{
    static const char *const words[] = {"only in A", "only in B", "different"};
    for (int kind = 0; kind < 3; kind++)
        if (diff->listed[kind] > LISTED)
            printf("… and %s more %s (--all lists them)\n",
                   rd_show_count(diff->listed[kind] - LISTED).s, words[kind]);
}

/* A server does not return the keys that expired before it loaded a snapshot. */
static void print_expired(const struct diff_tool *diff, enum diff_side side)
{
    uint64_t n = diff->result.counts.expired[side], only = diff->result.counts.only[side];
    if (n > 0)
        printf("%s%s of the keys only in %s %s expired: servers drop such keys, and --no-expired "
               "leaves them out\n",
               n == only && n > 1 ? "all " : "", rd_show_count(n).s, side == DIFF_A ? "A" : "B",
               n == 1 ? "has" : "have");
}

static void print_summary(const struct diff_tool *diff)
{
    const struct diff_counts *n = &diff->result.counts;
    if (diff->result.functions_differ)
        printf("functions differ: %s and %s libraries\n",
               rd_show_count(diff->result.n_functions[DIFF_A]).s,
               rd_show_count(diff->result.n_functions[DIFF_B]).s);
    if (diff->result.n_due > 0)
        printf("%s key%s on one side only expired in the meantime and %s not compared\n",
               rd_show_count(diff->result.n_due).s, rd_show_plural(diff->result.n_due),
               diff->result.n_due == 1 ? "is" : "are");
    if (diff->result.is_void)
        return;
    print_expired(diff, DIFF_A);
    print_expired(diff, DIFF_B);
    printf("%s and %s keys: %s only in A, %s only in B, %s different",
           rd_show_count(n->keys[DIFF_A]).s, rd_show_count(n->keys[DIFF_B]).s,
           rd_show_count(n->only[DIFF_A]).s, rd_show_count(n->only[DIFF_B]).s,
           rd_show_count(n->different).s);
    if (n->different > 0)
        printf(" (type %s, expiry %s, value %s)", rd_show_count(n->type).s,
               rd_show_count(n->expiry).s, rd_show_count(n->value).s);
    printf("\n");
}

void diff_report_end(struct diff_tool *diff)
{
    if (diff->page != NULL)
        return;
    if (diff->lines) {
        json_init(&diff->json, diff->out);
        json_obj(&diff->json);
        json_key(&diff->json, "summary");
        json_obj(&diff->json);
        diff_put_summary(diff, &diff->json);
        json_end(&diff->json);
        json_end(&diff->json);
        rd_sink_byte(diff->out, '\n');
    } else if (diff->cli->json) {
        diff->cli->out = diff->json;
        json_end(&diff->cli->out);
        diff_put_summary(diff, &diff->cli->out);
    } else if (!diff->cli->quiet) {
        print_hidden(diff);
        print_summary(diff);
    }
}
