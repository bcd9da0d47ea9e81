/* fuzz_seal.c - no bytes open as a sealed object but those that were sealed.
 *
 * The input is opened as it is, then as frames after the header of an object that was really
 * sealed, and then as changes to that object: four bytes of it say where, and what is there
 * instead. Whatever comes out is a part of what was sealed, from its begin on; all of it only where
 * nothing was changed.
 */
#include "base/buf.h"
#include "base/seal.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLAIN = RD_SEAL_FRAME + 700 };

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_seal: %s\n", what);
    abort();
}

static struct rd_seal_key key;
static uint8_t plain[PLAIN];

static struct rd_buf seal_plain(void)
{
    static const uint8_t bytes[RD_SEAL_KEY] = {1, 2, 3};
    struct rd_buf sealed = {0};
    struct rd_sink *sink;
    check(rd_seal_key_set(&key, bytes, NULL), "a key");
    for (size_t i = 0; i < PLAIN; i++)
        plain[i] = (uint8_t)(i * 7);
    const struct rd_seal_opts opts = {.key = &key, .name = rd_slice_str("name"), .random = {9}};
    check(rd_sink_open_buf(&sink, &sealed, NULL, NULL) &&
              rd_seal_open_sink(&sink, sink, &opts, NULL),
          "sealing");
    rd_sink_write(sink, plain, PLAIN);
    check(rd_sink_close(sink, NULL), "sealing to the end");
    return sealed;
}

/* How many bytes came out; *ret_whole: and then the end. */
static size_t open_bytes(struct rd_slice sealed, bool *ret_whole)
{
    const struct rd_seal_ring ring = {.keys = &key, .n_keys = 1};
    struct rd_src *src;
    struct rd_slice s;
    enum rd_src_status status;
    size_t n = 0;
    check(rd_src_open_memory(&src, sealed, NULL, NULL) &&
              rd_seal_open_src(&src, src, &ring, rd_slice_str("name"), NULL),
          "opening");
    while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        check(n + s.len <= PLAIN && memcmp(s.ptr, plain + n, s.len) == 0,
              "bytes that were not sealed");
        n += s.len;
        rd_src_consume(src, s.len);
    }
    check(status == RD_SRC_END || rd_src_err(src)->text[0] != '\0', "an error without a text");
    *ret_whole = status == RD_SRC_END;
    rd_src_close(src);
    return n;
}

static void open_after_header(const struct rd_buf *sealed, const uint8_t *data, size_t size)
{
    struct rd_buf made = {0};
    bool whole;
    check(rd_buf_add(&made, sealed->ptr, RD_SEAL_HEADER) && rd_buf_add(&made, data, size),
          "memory");
    open_bytes(rd_buf_slice(&made), &whole);
    check(!whole, "frames that were not sealed");
    rd_buf_done(&made);
}

static void open_changed(const struct rd_buf *sealed, const uint8_t *data, size_t size)
{
    struct rd_buf made = {0};
    bool whole;
    check(rd_buf_add(&made, sealed->ptr, sealed->len), "memory");
    for (size_t i = 0; i + 4 <= size && i < 64; i += 4)
        made.ptr[(size_t)(data[i] << 16 | data[i + 1] << 8 | data[i + 2]) % made.len] = data[i + 3];
    bool same = memcmp(made.ptr, sealed->ptr, made.len) == 0;
    size_t n = open_bytes(rd_buf_slice(&made), &whole);
    check(whole == same && (!same || n == PLAIN), "a change that is not noticed");
    rd_buf_done(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rd_buf sealed;
    bool whole;
    if (sealed.len == 0)
        sealed = seal_plain();
    open_bytes(rd_slice(data, size), &whole);
    check(!whole || size == sealed.len, "an object that was not sealed");
    open_after_header(&sealed, data, size);
    open_changed(&sealed, data, size);
    return 0;
}
