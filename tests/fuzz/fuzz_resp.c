/* fuzz_resp.c - the readers of commands and replies take any bytes, in any pieces.
 *
 * The first byte chooses: bit 0 the reader, bit 1 whether it reads as a server does, bits 2 and 3
 * the window, bits 4 to 7 the size of the pieces. The rest is read from memory and again through
 * the window; both must see the same items and end in the same way at the same byte.
 */
#include "base/crc64.h"
#include "base/resp.h"
#include "base/src_impl.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECE_SHIFT = 4, WINDOW_SHIFT = 2 };

struct outcome {
    uint64_t items; /* a sum over everything that was read */
    enum resp_status status;
    enum rd_err_code code;
    uint64_t offset;
};

static const struct rd_resp_opts limits = {.size = sizeof(struct rd_resp_opts),
                                           .max_args = 5000,
                                           .max_bulk = 100000,
                                           .max_inline = 1000,
                                           .max_memory = 1 << 20};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_resp: %s\n", what);
    abort();
}

static void add(struct outcome *outcome, const void *ptr, size_t len)
{
    outcome->items = rd_crc64(outcome->items + len + 1, ptr, len);
}

static void read_commands(struct rd_src *src, bool client, struct outcome *ret)
{
    struct rd_resp_opts opts = limits;
    struct rd_resp_reader *r;
    struct resp_command cmd;
    opts.client = client;
    check(rd_resp_reader_new(&r, src, &opts, NULL), "out of memory");
    while ((ret->status = rd_resp_reader_next(r, &cmd)) == RESP_COMMAND) {
        check(cmd.argc > 0 && cmd.argc <= opts.max_args, "count of arguments");
        check(cmd.offset + cmd.len == rd_src_offset(src), "place of a command");
        for (size_t i = 0; i < cmd.argc; i++)
            add(ret, cmd.argv[i].ptr, cmd.argv[i].len);
    }
    ret->code = rd_resp_reader_err(r)->code;
    ret->offset = rd_resp_reader_err(r)->offset;
    rd_resp_reader_free(r);
}

static void read_replies(struct rd_src *src, struct outcome *ret)
{
    struct rd_resp_reply *r;
    struct resp_node node;
    check(rd_resp_reply_new(&r, src, 7, &limits, NULL), "out of memory");
    while ((ret->status = rd_resp_reply_next(r, &node)) == RESP_NODE) {
        check(node.depth <= 7, "depth");
        add(ret, node.text.ptr, node.text.len);
        add(ret, &node.n_children, sizeof node.n_children);
        add(ret, &node.integer, sizeof node.integer);
    }
    ret->code = rd_resp_reply_err(r)->code;
    ret->offset = rd_resp_reply_err(r)->offset;
    rd_resp_reply_free(r);
}

static struct outcome read_all(struct rd_src *src, uint8_t choice)
{
    struct outcome outcome = {0};
    if (choice & 1)
        read_replies(src, &outcome);
    else
        read_commands(src, (choice & 2) != 0, &outcome);
    rd_src_close(src);
    check(outcome.status == RESP_END || outcome.status == RESP_FAIL, "wants more of a whole input");
    check((outcome.status == RESP_FAIL) == (outcome.code != RD_ERR_OK), "failure without an error");
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t windows[] = {64, 100, 1000, 0};
    if (size == 0)
        return 0;
    uint8_t choice = data[0];
    struct rd_slice bytes = rd_slice(data + 1, size - 1);
    struct rd_src *whole = NULL, *inner = NULL, *pieces = NULL;
    struct rd_src_opts opts = RD_SRC_OPTS(.window = windows[(choice >> WINDOW_SHIFT) & 3]);
    size_t piece = (size_t)(choice >> PIECE_SHIFT) * 5 + 1;
    check(rd_src_open_memory(&whole, bytes, NULL, NULL) &&
              rd_src_open_memory(&inner, bytes, NULL, NULL) &&
              rd_src_open_trickle(&pieces, inner, piece, &opts, NULL),
          "out of memory");
    struct outcome a = read_all(whole, choice), b = read_all(pieces, choice);
    check(a.items == b.items, "other items in pieces");
    check(a.status == b.status && a.code == b.code && a.offset == b.offset, "other end in pieces");
    return 0;
}
