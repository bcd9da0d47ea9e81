#include <inttypes.h>
#include <stdio.h>

#include "aof/check/check_impl.h"
#include "aof/commands.h"

/* ---- names ---- */

void aof_check_report_names(struct check *c)
{
    char quoted[AOF_UNKNOWN_NAME_MAX * 2];
    for (size_t i = 0; i < c->names.n_unknown; i++) {
        const struct aof_unknown_name *s = &c->names.unknown[i];
        rd_err_quote(quoted, sizeof quoted, rd_slice(s->name, s->len));
        snprintf(c->text, sizeof c->text, "%s is not a known command; %" PRIu64 " time%s", quoted,
                 s->n, s->n == 1 ? "" : "s");
        c->file = s->of;
        aof_check_report(c, AOF_FINDING_UNKNOWN_COMMAND, s->offset, s->line, s->command, c->text);
        c->file = NULL;
    }
    if (c->names.n_more > 0) {
        snprintf(c->text, sizeof c->text, "%" PRIu64 " command%s with other unknown names",
                 c->names.n_more, c->names.n_more == 1 ? "" : "s");
        aof_check_report_file(c, AOF_FINDING_UNKNOWN_COMMAND, NULL, c->text);
    }
}

/* ---- transactions and time ---- */

/* An EXEC is missing: of the transaction, or of the first MULTI in it. */
void aof_check_exec_missing(struct check *c)
{
    struct aof_check_file *f = c->file;
    snprintf(c->text, sizeof c->text,
             "MULTI in the transaction that began at byte %" PRIu64 ": an EXEC is missing",
             c->multi);
    aof_check_report(c, AOF_FINDING_MULTI_NESTED, c->inner, c->inner_line, c->inner_number,
                     c->text);
    if (!f->damaged)
        c->failed_line = c->inner_line;
    aof_check_broke(c, RD_ERR_CORRUPT, c->inner, c->multi, c->multi_line, "MULTI in a transaction");
    if (f->after == RD_NO_OFFSET)
        f->after = c->inner;
}

/* One MULTI in a transaction may be that of a script, with an EXEC of its own. */
static void multi_begins(struct check *c, uint64_t offset)
{
    uint64_t line = aof_log_entry_line(c->log);
    if (c->in_multi && !c->in_inner) {
        c->in_inner = true;
        if (!c->has_inner) {
            c->inner = offset;
            c->inner_line = line;
            c->inner_number = c->file->commands;
        }
        c->has_inner = true;
        return;
    }
    if (c->in_inner)
        aof_check_exec_missing(c);
    c->in_multi = true;
    c->in_inner = c->has_inner = false;
    c->multi = offset;
    c->multi_line = line;
    c->multi_number = c->file->commands;
}

/* Its framing is right, but no server writes it here. */
static void wrong_command(struct check *c, const struct aof_log_entry *e, enum aof_finding_id id,
                          const char *text, const char *brief)
{
    struct aof_check_file *f = c->file;
    uint64_t line = aof_log_entry_line(c->log);
    aof_check_report(c, id, e->offset, line, f->commands, text);
    if (!f->damaged)
        c->failed_line = line;
    aof_check_broke(c, RD_ERR_CORRUPT, e->offset, c->in_multi ? c->multi : e->offset,
                    c->in_multi ? c->multi_line : line, brief);
    c->expect_after = f->after == RD_NO_OFFSET;
}

static void multi_ends(struct check *c, const struct aof_log_entry *e)
{
    struct aof_check_file *f = c->file;
    if (c->in_inner) {
        c->in_inner = false;
        c->n_inner++;
        return;
    }
    if (!c->in_multi) {
        wrong_command(c, e, AOF_FINDING_EXEC_ALONE, "the end of a transaction without its start",
                      "EXEC outside a transaction");
        return;
    }
    c->in_multi = c->has_inner = false;
    f->transactions++;
}

/* A server that loads a log adds DISCARD to the transaction, and waits for the EXEC. */
static void discarded(struct check *c, const struct aof_log_entry *e)
{
    wrong_command(c, e, AOF_FINDING_DISCARD,
                  "no server writes DISCARD, and a server that loads it keeps the transaction open",
                  "DISCARD in a transaction");
    c->in_multi = c->in_inner = c->has_inner = false;
}

void aof_check_report_inner(struct check *c)
{
    if (c->n_inner == 0 || c->file->damaged)
        return;
    snprintf(c->text, sizeof c->text,
             "%" PRIu64 " transaction%s inside transactions, as Redis 3.2 writes scripts that call "
             "redis.replicate_commands(): redis-check-aof refuses the file, servers load it",
             c->n_inner, c->n_inner == 1 ? "" : "s");
    aof_check_report_file(c, AOF_FINDING_INNER, c->file->name, c->text);
}

static void short_command(struct check *c, const struct aof_log_entry *e)
{
    char quoted[AOF_UNKNOWN_NAME_MAX];
    unsigned min_args;
    aof_command_look_up(e->command.argv[0], &min_args);
    rd_err_quote(quoted, sizeof quoted, e->command.argv[0]);
    snprintf(c->text, sizeof c->text,
             "%s with %zu argument%s: at least %u are required, and servers may crash", quoted,
             e->command.argc - 1, e->command.argc == 2 ? "" : "s", min_args - 1);
    wrong_command(c, e, AOF_FINDING_SHORT_COMMAND, c->text, "too few arguments");
}

void aof_check_command(struct check *c, const struct aof_log_entry *e)
{
    struct rd_slice name = e->command.argv != NULL ? e->command.argv[0] : rd_slice(NULL, 0);
    struct aof_unknown_name *unknown = NULL;
    c->file->commands++;
    enum aof_name_kind kind = aof_names_look_up(&c->names, name, e->command.argc, &unknown);
    c->known += kind != AOF_NAME_UNKNOWN;
    if (RD_UNLIKELY(unknown != NULL)) {
        unknown->of = c->file;
        unknown->offset = e->offset;
        unknown->line = aof_log_entry_line(c->log);
        unknown->command = c->file->commands;
    }
    if (RD_UNLIKELY(c->expect_after)) {
        c->file->after = e->offset;
        c->expect_after = false;
    }
    if (RD_UNLIKELY(c->opts.command != NULL))
        c->opts.command(c->opts.ctx, name);
    if (RD_UNLIKELY(kind == AOF_NAME_MULTI))
        multi_begins(c, e->offset);
    else if (RD_UNLIKELY(kind == AOF_NAME_EXEC || (kind == AOF_NAME_DISCARD && !c->in_multi)))
        multi_ends(c, e);
    else if (RD_UNLIKELY(kind == AOF_NAME_DISCARD))
        discarded(c, e);
    else if (RD_UNLIKELY(kind == AOF_NAME_SHORT))
        short_command(c, e);
}

void aof_check_annotation(struct check *c, const struct aof_log_entry *e)
{
    struct aof_check_file *f = c->file;
    int64_t s, before = f->last_time != AOF_NO_TIME ? f->last_time : c->res.last_time;
    f->annotations++;
    if (!aof_annotation_time(e->bytes, &s))
        return;
    if (f->first_time == AOF_NO_TIME)
        f->first_time = s;
    if (before != AOF_NO_TIME && s < before) {
        snprintf(c->text, sizeof c->text, "%" PRId64 " after %" PRId64 ": the clock was set back",
                 s, before);
        aof_check_report(c, AOF_FINDING_TIME_BACK, e->offset, aof_log_entry_line(c->log), 0,
                         c->text);
    }
    f->last_time = s;
    if (f->commands == 0 && c->base_time == AOF_NO_TIME && f->file != NULL &&
        f->file->type == AOF_BASE && !f->has_snapshot) {
        c->base_time = s;
        c->base_clock = "its first annotation";
    }
}
