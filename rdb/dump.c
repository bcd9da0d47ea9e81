#include "rdb/dump.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/read/reader_impl.h"
#include "rdb/version.h"

enum { FOOT = 10, SUM = 8, SINCE_ZERO_SUM = 12, SINCE_KEY_META = 13 };

static enum rdb_dialect dialect_of(int version)
{
    return version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
}

/* Redis 8.4 and later write payloads without a checksum into their logs and to their replicas. */
static bool may_have_no_sum(int version)
{
    return version >= SINCE_ZERO_SUM && dialect_of(version) == RDB_REDIS;
}

static bool check_sum(struct rd_slice payload, uint64_t stored, bool allow_zero, struct rd_err *err)
{
    size_t at = payload.len - SUM;
    if (stored == 0 && allow_zero)
        return true;
    uint64_t computed = rd_crc64(0, payload.ptr, at);
    return stored == computed ||
           rd_err_set(err, RD_ERR_CHECKSUM, at, "stored checksum %016llx, computed %016llx",
                      (unsigned long long)stored, (unsigned long long)computed);
}

/* Reads the metadata up to their end. */
static bool pass_meta(struct rdb_reader *r, struct rd_err *err)
{
    struct rdb_event ev;
    if (rdb_reader_next(r, &ev) == RDB_EVENT) {
        for (uint64_t left = ev.key_meta.n_classes; left > 0;) {
            if (rdb_reader_next(r, &ev) != RDB_EVENT)
                break;
            left -= ev.kind == RDB_VALUE_END;
        }
    }
    rd_err_adopt(err, rdb_reader_err(r));
    return rdb_reader_err(r)->code == RD_ERR_OK;
}

/* The metadata of modules at the beginning of a payload, before the type. */
static bool take_meta(struct rdb_dump *d, struct rd_slice bytes, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.no_sum = true);
    struct rdb_reader *r;
    struct rd_src *src;
    if (d->dialect != RDB_REDIS || d->version < SINCE_KEY_META || bytes.ptr[0] != RDB_OP_KEY_META)
        return true;
    if (!rd_src_open_memory(&src, bytes, NULL, err))
        return false;
    bool ok = rdb_reader_new_records(&r, src, d->dialect, d->version, &opts, err);
    if (ok) {
        ok = pass_meta(r, err);
        d->meta = rd_slice(bytes.ptr, (size_t)rd_src_offset(src));
        rdb_reader_free(r);
    }
    rd_src_close(src);
    if (ok && d->meta.len == bytes.len)
        ok = rd_err_set(err, RD_ERR_TRUNCATED, bytes.len, "a payload ends before its type");
    return ok;
}

bool rdb_dump_open(struct rdb_dump *ret, struct rd_slice payload, bool allow_zero,
                   struct rd_err *err)
{
    if (payload.len < 1 + FOOT)
        return rd_err_set(err, RD_ERR_TRUNCATED, payload.len, "too short for a payload");
    size_t foot = payload.len - FOOT;
    struct rdb_dump d = {.version = rd_get_le16(payload.ptr + foot),
                         .crc = rd_get_le64(payload.ptr + foot + 2)};
    d.dialect = dialect_of(d.version);
    if (!check_sum(payload, d.crc, allow_zero || may_have_no_sum(d.version), err))
        return false;
    if (!rdb_version_known(d.dialect, d.version))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, foot, "%s",
                          rdb_version_text(d.dialect, d.version).s);
    if (!take_meta(&d, rd_slice(payload.ptr, foot), err))
        return false;
    const uint8_t *type = payload.ptr + d.meta.len;
    d.type = rdb_type_find(d.dialect, d.version, *type);
    if (d.type == NULL)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, d.meta.len, "type %u in %s", *type,
                          rdb_version_text(d.dialect, d.version).s);
    if (rdb_template_whole(d.type) != d.type)
        return rd_err_set(err, RD_ERR_CORRUPT, d.meta.len, "%s", rdb_template_alone);
    d.value = rd_slice(type + 1, foot - d.meta.len - 1);
    *ret = d;
    return true;
}

static bool read_through(struct rdb_reader *r, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status st;
    do
        st = rdb_reader_next(r, &ev);
    while (st == RDB_EVENT);
    if (st == RDB_FAIL)
        rd_err_adopt(err, rdb_reader_err(r));
    return st == RDB_END;
}

static bool verify_value(const struct rdb_dump *dump, struct rd_src *src, struct rd_err *err)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .no_sum = true);
    struct rdb_reader *r;
    if (!rdb_reader_new_value(&r, src, dump->dialect, dump->version, &opts, err))
        return false;
    bool ok = read_through(r, err);
    rdb_reader_free(r);
    if (ok && rd_src_avail(src) > 0)
        ok = rd_err_set(err, RD_ERR_CORRUPT, rd_src_offset(src), "bytes after the value");
    return ok;
}

bool rdb_dump_verify(struct rd_slice payload, struct rd_err *err)
{
    struct rdb_dump dump;
    struct rd_src *src;
    if (!rdb_dump_open(&dump, payload, false, err))
        return false;
    /* The reader begins at the type byte, so that its offsets are the payload's. */
    struct rd_slice typed = rd_slice(payload.ptr, payload.len - FOOT);
    if (!rd_src_open_memory(&src, typed, NULL, err))
        return false;
    for (size_t left = dump.meta.len; left > 0;) {
        struct rd_slice s;
        if (rd_src_need(src, 1, &s) != RD_SRC_OK)
            break;
        size_t n = s.len < left ? s.len : left;
        rd_src_consume(src, n);
        left -= n;
    }
    bool ok = verify_value(&dump, src, err);
    rd_src_close(src);
    return ok;
}

static bool append(struct rd_buf *buf, const struct rdb_type *type, struct rd_slice value,
                   int version)
{
    size_t start = buf->len;
    uint8_t foot[FOOT];
    rd_put_le16(foot, (uint16_t)version);
    if (!rd_buf_add_byte(buf, type->number) || !rd_buf_add(buf, value.ptr, value.len) ||
        !rd_buf_add(buf, foot, 2))
        return false;
    rd_put_le64(foot, rd_crc64(0, buf->ptr + start, buf->len - start));
    return rd_buf_add(buf, foot, SUM);
}

bool rdb_dump_make(struct rd_buf *ret, const struct rdb_type *type, struct rd_slice value,
                   int version, struct rd_err *err)
{
    enum rdb_dialect dialect = dialect_of(version);
    if (!rdb_version_known(dialect, version) ||
        rdb_type_find(dialect, version, type->number) != type || rdb_template_whole(type) != type)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s in %s", type->name,
                          rdb_version_text(dialect, version).s);
    size_t len = ret->len;
    if (append(ret, type, value, version))
        return true;
    ret->len = len;
    return rd_err_nomem(err, value.len);
}
