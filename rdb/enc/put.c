#include "rdb/enc/put.h"

#include <math.h>

#include "base/endian.h"
#include "base/mem.h"
#include "base/num_g17.h"

enum {
    LEN_32 = 0x80,
    LEN_64 = 0x81,
    STRING_INT8 = 0xc0,
    STRING_INT16 = 0xc1,
    STRING_INT32 = 0xc2,
    STRING_LZF = 0xc3,
    INT32_TEXT_MAX = 11, /* "-2147483648" */
    SCRATCH_KEPT = 256 * 1024,
    SCORE_NAN = 253,
    SCORE_INF = 254,
    SCORE_MINUS_INF = 255
};

bool rdb_put_init(struct rdb_put *put, bool compress)
{
    *put = (struct rdb_put){0};
    if (!compress)
        return true;
    put->table = rd_calloc(1, sizeof *put->table);
    return put->table != NULL;
}

void rdb_put_done(struct rdb_put *put)
{
    rd_free(put->table);
    rd_buf_done(&put->out);
    put->table = NULL;
}

size_t rdb_put_len_bytes(uint8_t dst[RDB_PUT_LEN_MAX], uint64_t len)
{
    if (len < 1 << 6) {
        dst[0] = (uint8_t)len;
        return 1;
    }
    if (len < 1 << 14) {
        rd_put_be16(dst, (uint16_t)(0x4000 | len));
        return 2;
    }
    if (len <= UINT32_MAX) {
        dst[0] = LEN_32;
        rd_put_be32(dst + 1, (uint32_t)len);
        return 5;
    }
    dst[0] = LEN_64;
    rd_put_be64(dst + 1, len);
    return 9;
}

bool rdb_put_len(struct rd_sink *sink, uint64_t len)
{
    uint8_t bytes[RDB_PUT_LEN_MAX];
    return rd_sink_write(sink, bytes, rdb_put_len_bytes(bytes, len));
}

bool rdb_put_raw(struct rd_sink *sink, struct rd_slice text)
{
    return rdb_put_len(sink, text.len) && rd_sink_write(sink, text.ptr, text.len);
}

static bool put_int32(struct rd_sink *sink, int32_t v)
{
    uint8_t bytes[5];
    if (v >= INT8_MIN && v <= INT8_MAX) {
        bytes[0] = STRING_INT8;
        bytes[1] = (uint8_t)v;
        return rd_sink_write(sink, bytes, 2);
    }
    if (v >= INT16_MIN && v <= INT16_MAX) {
        bytes[0] = STRING_INT16;
        rd_put_le16(bytes + 1, (uint16_t)v);
        return rd_sink_write(sink, bytes, 3);
    }
    bytes[0] = STRING_INT32;
    rd_put_le32(bytes + 1, (uint32_t)v);
    return rd_sink_write(sink, bytes, 5);
}

bool rdb_put_int(struct rd_sink *sink, int64_t v)
{
    if (v >= INT32_MIN && v <= INT32_MAX)
        return put_int32(sink, (int32_t)v);
    char text[RD_NUM_I64_MAX];
    return rdb_put_raw(sink, rd_slice(text, rd_num_put_i64(text, v)));
}

/* The text as an integer, where it is one that the integer form can hold. */
static bool is_int32(struct rd_slice text, int32_t *ret)
{
    int64_t v;
    if (text.len == 0 || text.len > INT32_TEXT_MAX || text.ptr[0] > '9' ||
        !rd_num_get_i64(text, &v) || v < INT32_MIN || v > INT32_MAX)
        return false;
    *ret = (int32_t)v;
    return true;
}

/* Compresses into put->out; 0 where that does not pay, or memory is short. */
static size_t compress(struct rdb_put *put, struct rd_slice text)
{
    if (put->out.cap > SCRATCH_KEPT && text.len < SCRATCH_KEPT / 2)
        rd_buf_done(&put->out);
    rd_buf_reset(&put->out);
    size_t cap = text.len - RDB_PUT_COMPRESS_GAIN;
    if (!rd_buf_reserve(&put->out, cap))
        return 0;
    return rdb_lzf_compress(put->table, text.ptr, text.len, put->out.ptr, cap);
}

bool rdb_put_string(struct rdb_put *put, struct rd_sink *sink, struct rd_slice text)
{
    int32_t num;
    if (is_int32(text, &num))
        return put_int32(sink, num);
    if (put->table != NULL && text.len >= RDB_PUT_COMPRESS_MIN) {
        size_t len = compress(put, text);
        if (len > 0)
            return rd_sink_byte(sink, STRING_LZF) && rdb_put_len(sink, len) &&
                   rdb_put_len(sink, text.len) && rd_sink_write(sink, put->out.ptr, len);
    }
    return rdb_put_raw(sink, text);
}

bool rdb_put_le64(struct rd_sink *sink, uint64_t v)
{
    uint8_t bytes[8];
    rd_put_le64(bytes, v);
    return rd_sink_write(sink, bytes, sizeof bytes);
}

bool rdb_put_f64(struct rd_sink *sink, double v)
{
    uint8_t bytes[8];
    rd_put_le_f64(bytes, v);
    return rd_sink_write(sink, bytes, sizeof bytes);
}

size_t rdb_put_f64_format(char dst[RDB_PUT_F64_TEXT_MAX], double v)
{
    return rd_num_put_g17(dst, v);
}

bool rdb_put_f64_text(struct rd_sink *sink, double v)
{
    if (isnan(v))
        return rd_sink_byte(sink, SCORE_NAN);
    if (isinf(v))
        return rd_sink_byte(sink, v > 0 ? SCORE_INF : SCORE_MINUS_INF);
    char text[RDB_PUT_F64_TEXT_MAX];
    size_t len = rdb_put_f64_format(text, v);
    return rd_sink_byte(sink, (uint8_t)len) && rd_sink_write(sink, text, len);
}
