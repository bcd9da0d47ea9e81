/* live_record.c - DUMP becomes a record of a snapshot.
 *
 *     asked, of a key       expiry  DUMP  expiry
 *     DUMP                  type (1)  value  version (2, little-endian)  crc64 (8)
 *     record                [252  expiry (8, little-endian)]  type (1)  name  value
 *     FUNCTION DUMP         [245  library]*  version (2)  crc64 (8)
 *
 * The version is at the end of each payload and at the beginning of a snapshot, so the header is
 * written again when the first was seen. The snapshot has no checksum, because the checksum of each
 * payload was verified.
 */
#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/version.h"
#include "base/num.h"
#include "client/live_impl.h"
#include "rdb/event.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FOOT = 10,
    SUM = 8,
    OUT_MAX = 256 * 1024,
    VERSION_DEFAULT = 11,
    LEN_32 = 0x80,
    LEN_64 = 0x81
};

/* ---- output ---- */

static bool drain(struct client_live *live, struct rd_err *err)
{
    if (live->out.len > 0 && !live->to->append(live->to->ctx, live->out.ptr, live->out.len, err))
        return false;
    live->size += live->out.len;
    rd_buf_reset(&live->out);
    return true;
}

static bool put(struct client_live *live, const void *bytes, size_t len, struct rd_err *err)
{
    if (live->out.len + len > OUT_MAX && !drain(live, err))
        return false;
    return rd_buf_add(&live->out, bytes, len) || rd_err_nomem(err, len);
}

static uint64_t position(const struct client_live *live)
{
    return live->size + live->out.len;
}

/* Discards the output after a position. */
static void cut(struct client_live *live, uint64_t at)
{
    if (at >= live->size) {
        live->out.len = (size_t)(at - live->size);
    } else {
        live->out.len = 0;
        live->size = at;
        live->to->cut(live->to->ctx, at);
    }
}

/* The longer form of a length is sufficient: only our reader reads it. */
static bool put_len(struct client_live *live, uint64_t len, struct rd_err *err)
{
    uint8_t bytes[9] = {LEN_64};
    rd_put_be64(bytes + 1, len);
    if (len > UINT32_MAX)
        return put(live, bytes, 9, err);
    bytes[4] = LEN_32;
    return put(live, bytes + 4, 5, err);
}

static void header(const struct client_live *live, char dst[RDB_MAGIC_LEN + 8])
{
    int version = live->version != 0 ? live->version : VERSION_DEFAULT;
    snprintf(dst, RDB_MAGIC_LEN + 8, live->dialect == RDB_VALKEY ? "VALKEY%03d" : "REDIS%04d",
             version);
}

bool client_live_begin_snapshot(struct client_live *live, struct rd_err *err)
{
    char magic[RDB_MAGIC_LEN + 8];
    header(live, magic);
    return put(live, magic, RDB_MAGIC_LEN, err);
}

bool client_live_put_db(struct client_live *live, struct rd_err *err)
{
    return put(live, &(uint8_t){RDB_OP_SELECTDB}, 1, err) && put_len(live, live->db, err);
}

bool client_live_end_snapshot(struct client_live *live, struct rd_err *err)
{
    uint8_t end[1 + RDB_TRAILER_LEN] = {RDB_OP_EOF};
    char magic[RDB_MAGIC_LEN + 8];
    bool summed = live->version == 0 || live->version >= RDB_VERSION_CHECKSUM;
    header(live, magic);
    return put(live, end, summed ? sizeof end : 1, err) && drain(live, err) &&
           live->to->write(live->to->ctx, 0, magic, RDB_MAGIC_LEN, err);
}

/* ---- payloads ---- */

/* A payload that is being copied. Its last FOOT bytes are known only when it ends. */
struct payload {
    uint64_t left; /* of it, with the foot */
    uint64_t crc;
    uint8_t foot[FOOT];
    int version; /* known when it has ended */
};

/* Copies `len` bytes of the source and adds them to the checksum. */
static bool pass(struct client_live *live, struct payload *p, uint64_t len, struct rd_err *err)
{
    struct rd_src *src = client_peer_src(live->peer);
    struct rd_slice s;
    p->left -= len;
    while (len > 0) {
        if (rd_src_need(src, 1, &s) != RD_SRC_OK)
            return client_peer_fail(live->peer, err);
        size_t n = s.len < len ? s.len : (size_t)len;
        if (!put(live, s.ptr, n, err))
            return false;
        p->crc = rd_crc64(p->crc, s.ptr, n);
        rd_src_consume(src, n);
        len -= n;
    }
    return true;
}

static bool fail(const struct client_live *live, enum rd_err_code code, const char *what,
                 struct rd_err *err)
{
    rd_err_set(err, code, RD_NO_OFFSET, "%s", what);
    rd_err_origin(err, live->opts->target->name);
    return false;
}

static enum rdb_dialect dialect_of(int version)
{
    return version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
}

/* Whether each type of the lower version has the same meaning in the higher one. Redis and Valkey
 * have the same types up to the last version before the fork. */
static bool agree(int low, int high)
{
    enum { GCRA_OR_OTHER = 33 };
    bool same_dialect =
        low < RDB_VERSION_OF_7_4 || high < RDB_VERSION_VALKEY_MIN || low >= RDB_VERSION_VALKEY_MIN;
    return same_dialect && (!rdb_is_gcra(RDB_REDIS, low, GCRA_OR_OTHER) ||
                            rdb_is_gcra(RDB_REDIS, high, GCRA_OR_OTHER));
}

/* Some servers write each payload in the oldest version that can hold its value. The snapshot gets
 * the highest of them. */
static bool take_version(struct client_live *live, int version, struct rd_err *err)
{
    enum rdb_dialect dialect = dialect_of(version);
    int before = live->version;
    if (before == version)
        return true;
    if (!rdb_version_known(dialect, version)) {
        rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "payloads of %s",
                   rdb_version_text(dialect, version).s);
        rd_err_origin(err, live->opts->target->name);
        return false;
    }
    if (before != 0 && !(before < version ? agree(before, version) : agree(version, before)))
        return fail(live, RD_ERR_PROTOCOL, "payloads of different versions", err);
    if (before < version) {
        live->version = version;
        live->dialect = dialect;
    }
    return true;
}

/* Reads the foot and the line end, and checks both. */
static bool end_payload(struct client_live *live, struct payload *p, struct rd_err *err)
{
    struct rd_src *src = client_peer_src(live->peer);
    struct rd_slice s;
    if (rd_src_need(src, FOOT, &s) != RD_SRC_OK)
        return client_peer_fail(live->peer, err);
    memcpy(p->foot, s.ptr, FOOT);
    rd_src_consume(src, FOOT);
    uint64_t stored = rd_get_le64(p->foot + FOOT - SUM);
    if (stored != 0 && stored != rd_crc64(p->crc, p->foot, FOOT - SUM))
        return fail(live, RD_ERR_PROTOCOL, "checksum mismatch in a payload", err);
    p->version = rd_get_le16(p->foot);
    return client_peer_end_string(live->peer, err) && take_version(live, p->version, err);
}

/* ---- keys ---- */

bool client_live_ask(struct client_live *live, struct rd_slice name, struct rd_err *err)
{
    const struct rd_slice expire[2] = {rd_slice_str(live->expire_command), name};
    const struct rd_slice dump[2] = {rd_slice_str("DUMP"), name};
    return client_peer_send(live->peer, expire, 2, err) &&
           client_peer_send(live->peer, dump, 2, err) &&
           client_peer_send(live->peer, expire, 2, err);
}

/* RDB_NO_EXPIRE also if the key does not exist: its payload shows that. */
static bool take_expiry(struct client_live *live, int64_t *ret, struct rd_err *err)
{
    struct resp_node node;
    if (!client_peer_next_value(live->peer, &node, err))
        return false;
    if (node.type != RESP_INTEGER)
        return fail(live, RD_ERR_PROTOCOL, "an expiry is not a number", err);
    *ret = node.integer < 0 ? RDB_NO_EXPIRE : node.integer;
    if (live->result->rough && *ret != RDB_NO_EXPIRE &&
        __builtin_add_overflow(*ret, live->server_ms, ret))
        *ret = INT64_MAX;
    return true;
}

/* With PTTL, two readings of one expiry differ by a few milliseconds. */
static bool same_expiry(const struct client_live *live, int64_t a, int64_t b)
{
    if (a == b || a == RDB_NO_EXPIRE || b == RDB_NO_EXPIRE || !live->result->rough)
        return a == b;
    return (a > b ? a - b : b - a) <= CLIENT_LIVE_ROUGH_MS;
}

static bool put_head(struct client_live *live, int64_t expire_ms, uint8_t type,
                     struct rd_slice name, struct rd_err *err)
{
    uint8_t expiry[9] = {RDB_OP_EXPIRETIME_MS};
    rd_put_le64(expiry + 1, (uint64_t)expire_ms);
    return (expire_ms == RDB_NO_EXPIRE || put(live, expiry, sizeof expiry, err)) &&
           put(live, &type, 1, err) && put_len(live, name.len, err) &&
           put(live, name.ptr, name.len, err);
}

/* *ret_known: whether the version of the payload has its type. */
static bool put_record(struct client_live *live, int64_t expire_ms, struct rd_slice name,
                       uint64_t len, bool *ret_known, struct rd_err *err)
{
    struct rd_src *src = client_peer_src(live->peer);
    struct payload p = {.left = len};
    struct rd_slice s;
    if (len < 1 + FOOT)
        return fail(live, RD_ERR_PROTOCOL, "payload too short", err);
    if (rd_src_need(src, 1, &s) != RD_SRC_OK)
        return client_peer_fail(live->peer, err);
    uint8_t type = s.ptr[0];
    p.crc = rd_crc64(0, s.ptr, 1);
    p.left--;
    rd_src_consume(src, 1);
    if (!put_head(live, expire_ms, type, name, err) || !pass(live, &p, p.left - FOOT, err) ||
        !end_payload(live, &p, err))
        return false;
    *ret_known = rdb_type_find(dialect_of(p.version), p.version, type) != NULL;
    return true;
}

static bool take_nothing(struct client_live *live, struct rd_err *err)
{
    struct resp_node node;
    return client_peer_next_value(live->peer, &node, err) &&
           (node.null || fail(live, RD_ERR_PROTOCOL, "unexpected reply to DUMP", err));
}

static bool take_key(struct client_live *live, struct rd_slice name, bool as_it_is,
                     enum client_live_outcome *ret, uint64_t *ret_bytes, struct rd_err *err)
{
    int64_t before, after;
    uint64_t at = position(live), len = 0;
    bool there, known = true;
    if (!take_expiry(live, &before, err) ||
        !client_peer_next_header(live->peer, &there, &len, err) ||
        !(there ? put_record(live, before, name, len, &known, err) : take_nothing(live, err)) ||
        !take_expiry(live, &after, err))
        return false;
    *ret_bytes += len;
    if (!there)
        *ret = CLIENT_LIVE_GONE;
    else if (!known)
        *ret = CLIENT_LIVE_UNKNOWN;
    else
        *ret = same_expiry(live, before, after) ? CLIENT_LIVE_READ : CLIENT_LIVE_CHANGED;
    if (*ret == CLIENT_LIVE_UNKNOWN || (*ret == CLIENT_LIVE_CHANGED && !as_it_is))
        cut(live, at);
    return true;
}

bool client_live_take(struct client_live *live, struct rd_slice name, bool as_it_is,
                      enum client_live_outcome *ret, uint64_t *ret_bytes, struct rd_err *err)
{
    char quoted[120];
    if (take_key(live, name, as_it_is, ret, ret_bytes, err))
        return true;
    rd_err_doing(err, "key %s in db %" PRIu64, rd_err_quote(quoted, sizeof quoted, name), live->db);
    return false;
}

/* ---- functions ---- */

/* Servers before 7.0 do not know the command. */
bool client_live_put_functions(struct client_live *live, struct rd_err *err)
{
    struct client_live_result *result = live->result;
    struct payload p = {0};
    struct resp_node node;
    bool there;
    if (!client_peer_send_line(live->peer, "FUNCTION DUMP", err) ||
        !client_peer_next_header(live->peer, &there, &p.left, err))
        return false;
    if (there && p.left < FOOT)
        return fail(live, RD_ERR_PROTOCOL, "payload too short", err);
    if (there)
        return pass(live, &p, p.left - FOOT, err) && end_payload(live, &p, err);
    if (!client_peer_next(live->peer, &node, err))
        return false;
    result->no_functions = true;
    result->functions_refused = rd_resp_error_reason(node.text) == RESP_REASON_NOPERM;
    return (node.type == RESP_ERROR && node.last) ||
           fail(live, RD_ERR_PROTOCOL, "unexpected reply to FUNCTION DUMP", err);
}
