/* ACL LOG: the latest refusals, the newest first. */
#include "server/session/acl/acl_impl.h"

#include "engine/mem.h"

enum {
    SAME_MS = 60000, /* refusals of the same kind within this time share an entry */
    LOOK_BACK = 10   /* entries */
};

static void unlink_entry(struct acl_log *log, struct acl_log_entry *e)
{
    *(e->prev != NULL ? &e->prev->next : &log->first) = e->next;
    *(e->next != NULL ? &e->next->prev : &log->last) = e->prev;
    log->n--;
}

static void push(struct acl_log *log, struct acl_log_entry *e)
{
    e->prev = NULL;
    e->next = log->first;
    *(log->first != NULL ? &log->first->prev : &log->last) = e;
    log->first = e;
    log->n++;
}

static void drop_last(struct acl_log *log)
{
    struct acl_log_entry *e = log->last;
    unlink_entry(log, e);
    acl_text_free(e->object);
    acl_text_free(e->user);
    rd_buf_done(&e->client);
    engine_scratch_free(e);
}

void acl_log_done(struct acl_log *log)
{
    while (log->n > 0)
        drop_last(log);
}

static bool is_same(const struct acl_log_entry *a, const struct acl_log_entry *b)
{
    int64_t apart_ms = a->at_ms > b->at_ms ? a->at_ms - b->at_ms : b->at_ms - a->at_ms;
    return a->verdict == b->verdict && a->context == b->context && apart_ms <= SAME_MS &&
           rd_slice_eq(a->object, b->object) && rd_slice_eq(a->user, b->user);
}

static struct acl_log_entry *find_same(const struct acl_log *log, const struct acl_log_entry *want)
{
    struct acl_log_entry *e = log->first;
    for (int i = 0; i < LOOK_BACK && e != NULL; i++, e = e->next)
        if (is_same(e, want))
            return e;
    return NULL;
}

static struct acl_log_entry *new_entry(const struct acl_log_entry *from)
{
    struct acl_log_entry *e = engine_scratch_alloc(sizeof *e);
    *e = *from;
    e->object = acl_text_copy(from->object);
    e->user = acl_text_copy(from->user);
    return e;
}

void acl_log_add(struct client *c, enum acl_verdict verdict, enum acl_context context,
                 struct rd_slice object, struct rd_slice user)
{
    struct acl_log *log = &c->sessions->acl->log;
    struct acl_log_entry fresh = {.verdict = verdict,
                                  .context = context,
                                  .object = object,
                                  .user = user,
                                  .at_ms = loop_now_ms(c->sessions->loop)};
    struct acl_log_entry *e = find_same(log, &fresh);
    bool known = e != NULL;
    if (known)
        unlink_entry(log, e);
    else
        e = new_entry(&fresh);
    push(log, e);
    e->count++;
    e->at_ms = fresh.at_ms;
    rd_buf_reset(&e->client);
    client_describe(c, &e->client);
    while (!known && log->n > (uint64_t)c->sessions->loop->settings.acllog_max_len)
        drop_last(log);
}

void acl_log_refusal(struct client *c, enum acl_verdict verdict, enum acl_context context,
                     const struct engine_command *command, struct rd_slice arg)
{
    struct rd_slice object =
        verdict == ACL_DENIED_COMMAND ? rd_slice(command->name, command->name_len) : arg;
    acl_log_add(c, verdict, context, object, rd_slice_str(acl_user_name(c->user)));
}

const struct acl_log_entry *acl_log_first(const struct sessions *sessions, size_t *ret_n)
{
    *ret_n = sessions->acl->log.n;
    return sessions->acl->log.first;
}

void acl_log_reset(struct sessions *sessions)
{
    acl_log_done(&sessions->acl->log);
}
