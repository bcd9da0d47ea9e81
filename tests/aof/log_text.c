#include "tests/aof/log_text.h"

#include <criterion/criterion.h>

#include "base/crc64.h"
#include "base/src_impl.h"

struct rd_src *log_memory(struct rd_slice bytes)
{
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    return src;
}

struct rd_src *log_trickle(struct rd_slice bytes, size_t n, size_t window)
{
    struct rd_src_opts opts = RD_SRC_OPTS(.window = window);
    struct rd_src *src;
    cr_assert(rd_src_open_trickle(&src, log_memory(bytes), n, &opts, NULL));
    return src;
}

static uint64_t line_of(struct rd_slice bytes, uint64_t offset)
{
    uint64_t line = 1;
    for (uint64_t i = 0; i < offset; i++)
        line += bytes.ptr[i] == '\n';
    return line;
}

static void put_command(struct rd_buf *text, const struct aof_log_entry *entry, uint64_t offset,
                        uint64_t len, uint64_t sum)
{
    const struct resp_command *cmd = &entry->command;
    rd_buf_printf(text, "%ju+%ju %zu ", (uintmax_t)offset, (uintmax_t)len, cmd->argc);
    if (cmd->argv == NULL || cmd->argv[0].len > 64)
        rd_buf_printf(text, "(long)");
    else
        rd_buf_add(text, cmd->argv[0].ptr, cmd->argv[0].len);
    rd_buf_printf(text, " %016jx\n", (uintmax_t)sum);
}

/* The arguments, framed again, are the bytes of the command. */
static void check_arguments(const struct aof_log_entry *entry)
{
    struct rd_buf made = {0};
    cr_assert(rd_buf_printf(&made, "*%zu\r\n", entry->command.argc));
    for (size_t i = 0; i < entry->command.argc; i++) {
        const struct rd_slice *arg = &entry->command.argv[i];
        cr_assert(rd_buf_printf(&made, "$%zu\r\n", arg->len) &&
                  rd_buf_add(&made, arg->ptr, arg->len) && rd_buf_add(&made, "\r\n", 2));
    }
    cr_assert(rd_slice_eq(rd_buf_slice(&made), entry->bytes));
    rd_buf_done(&made);
}

static void put_entry(struct rd_buf *text, const struct aof_log_entry *entry, bool names,
                      uint64_t *long_sum, uint64_t *long_end)
{
    switch (entry->kind) {
    case AOF_LOG_COMMAND:
        cr_assert_eq(entry->len, entry->bytes.len);
        cr_assert_eq(entry->command.offset, entry->offset);
        cr_assert_eq(entry->command.len, entry->len);
        if (!names)
            check_arguments(entry);
        put_command(text, entry, entry->offset, entry->len,
                    rd_crc64(0, entry->bytes.ptr, entry->bytes.len));
        break;
    case AOF_LOG_ANNOTATION:
        rd_buf_printf(text, "%ju+%ju ", (uintmax_t)entry->offset, (uintmax_t)entry->len);
        rd_buf_add(text, entry->bytes.ptr, entry->bytes.len);
        rd_buf_add_byte(text, '\n');
        break;
    case AOF_LOG_LONG:
        cr_assert_eq(entry->len, 0);
        *long_sum = 0;
        *long_end = entry->offset;
        break;
    case AOF_LOG_PIECE:
        cr_assert_eq(entry->offset, *long_end);
        cr_assert_eq(entry->len, entry->bytes.len);
        cr_assert_gt(entry->len, 0);
        *long_sum = rd_crc64(*long_sum, entry->bytes.ptr, entry->bytes.len);
        *long_end += entry->len;
        break;
    case AOF_LOG_LONG_END:
        cr_assert_eq(entry->offset + entry->len, *long_end);
        put_command(text, entry, entry->offset, entry->len, *long_sum);
        break;
    }
}

static void put_end(struct rd_buf *text, const struct aof_log *log, enum aof_log_status status)
{
    const struct rd_err *err = aof_log_err(log);
    uintmax_t whole = aof_log_whole(log);
    if (status == AOF_LOG_FAIL)
        rd_buf_printf(text, "%s@%ju after %ju", rd_err_word(err->code), (uintmax_t)err->offset,
                      whole);
    else
        rd_buf_printf(text, "%s@%ju", status == AOF_LOG_END ? "end" : "more", whole);
    rd_buf_add_byte(text, 0);
}

struct rd_buf log_text(struct rd_src *src, const struct aof_log_opts *opts, struct rd_slice bytes)
{
    struct aof_log *log;
    struct aof_log_entry entry;
    enum aof_log_status status;
    struct rd_buf text = {0};
    uint64_t long_sum = 0, long_end = 0;
    bool lines = opts != NULL && opts->lines && bytes.len > 0;
    cr_assert(aof_log_new(&log, src, opts, NULL));
    for (size_t n = 0; (status = aof_log_next(log, &entry)) == AOF_LOG_ENTRY; n++) {
        put_entry(&text, &entry, opts != NULL && opts->names, &long_sum, &long_end);
        /* Asked now and then only, so that much and little has to be counted. */
        if (lines && n % 3 != 1)
            cr_assert_eq(
                aof_log_entry_line(log),
                line_of(bytes, entry.kind == AOF_LOG_PIECE ? entry.command.offset : entry.offset));
        if (lines && n % 4 == 0)
            cr_assert_eq(aof_log_line(log), line_of(bytes, aof_log_whole(log)));
    }
    if (lines)
        cr_assert_eq(aof_log_line(log), line_of(bytes, aof_log_whole(log)));
    put_end(&text, log, status);
    aof_log_free(log);
    rd_src_close(src);
    return text;
}
