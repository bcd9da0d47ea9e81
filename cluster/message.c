#include "cluster/message.h"

#include <ctype.h>

#include "base/endian.h"
#include "cluster/message_impl.h"
#include "cluster/nodes_conf.h"

/* ---- texts ---- */

static bool all_are(struct rd_slice text, bool (*is)(int c))
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is(text.ptr[i]))
            return false;
    }
    return true;
}

static bool of_address(int c)
{
    return c < 128 && (isalnum(c) || strchr(".:%-_", c) != NULL) && c != 0;
}

static bool of_hostname(int c)
{
    return c < 128 && (isalnum(c) || c == '.' || c == '-');
}

/* What separates the parts of a line is not in a name. */
static bool of_human_name(int c)
{
    return c > ' ' && c != 127 && strchr(",=\"'\\", c) == NULL;
}

bool cluster_is_address(struct rd_slice text)
{
    return text.len <= CLUSTER_ADDRESS_MAX && all_are(text, of_address);
}

bool cluster_is_hostname(struct rd_slice text)
{
    return text.len <= CLUSTER_NAME_MAX && all_are(text, of_hostname);
}

bool cluster_is_human_name(struct rd_slice text)
{
    return text.len <= CLUSTER_NAME_MAX && all_are(text, of_human_name);
}

const char *cluster_message_word(enum cluster_message_type type)
{
    static const char *const words[] = {
#define X(name, number, word) word,
        CLUSTER_MESSAGES(X)
#undef X
    };
    return words[type];
}

static struct rd_slice text_at(const uint8_t *at, size_t room)
{
    return rd_slice(at, strnlen((const char *)at, room));
}

/* ---- frames ---- */

enum cluster_frame cluster_message_frame(struct rd_slice bytes, size_t *ret_len, struct rd_err *err)
{
    size_t n = bytes.len < CLUSTER_SIGNATURE_LEN ? bytes.len : CLUSTER_SIGNATURE_LEN;
    if (n > 0 && memcmp(bytes.ptr, CLUSTER_SIGNATURE, n) != 0) {
        rd_err_set(err, RD_ERR_CORRUPT, 0, "not a message of the cluster bus");
        return CLUSTER_FRAME_BAD;
    }
    if (bytes.len < CLUSTER_AT_VERSION)
        return CLUSTER_FRAME_MORE;
    uint32_t len = rd_get_be32(bytes.ptr + CLUSTER_AT_LENGTH);
    if (len < CLUSTER_HEADER_LEN || len > CLUSTER_MESSAGE_MAX) {
        rd_err_set(err, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH, "a length of %u bytes", len);
        return CLUSTER_FRAME_BAD;
    }
    *ret_len = len;
    return bytes.len < len ? CLUSTER_FRAME_MORE : CLUSTER_FRAME_READY;
}

/* ---- fields ---- */

static void get_id(struct cluster_id *ret, const uint8_t *at)
{
    memcpy(ret->s, at, CLUSTER_ID_LEN);
    ret->s[CLUSTER_ID_LEN] = 0;
}

void cluster_message_sender(struct rd_slice header, struct cluster_id *ret)
{
    get_id(ret, header.ptr + CLUSTER_AT_SENDER);
}

size_t cluster_message_max(struct rd_slice header, bool known)
{
    size_t n_gossip = rd_get_be16(header.ptr + CLUSTER_AT_COUNT);
    switch (rd_get_be16(header.ptr + CLUSTER_AT_TYPE)) {
    case CLUSTER_MESSAGE_PING:
    case CLUSTER_MESSAGE_PONG:
    case CLUSTER_MESSAGE_MEET:
        return CLUSTER_HEADER_LEN + n_gossip * CLUSTER_GOSSIP_LEN + CLUSTER_EXTENSIONS_MAX;
    case CLUSTER_MESSAGE_PUBLISH:
    case CLUSTER_MESSAGE_PUBLISH_SHARD:
    case CLUSTER_MESSAGE_MODULE:
        return known ? CLUSTER_MESSAGE_MAX : CLUSTER_SHORT_MAX;
    default:
        return CLUSTER_SHORT_MAX;
    }
}

static bool is_id(const uint8_t *at)
{
    return cluster_is_id(rd_slice(at, CLUSTER_ID_LEN));
}

static bool read_id(struct cluster_id *ret, struct rd_slice bytes, size_t at, const char *what,
                    struct rd_err *err)
{
    if (!is_id(bytes.ptr + at))
        return rd_err_set(err, RD_ERR_CORRUPT, at, "%s is not an id", what);
    get_id(ret, bytes.ptr + at);
    return true;
}

static void get_address(char *ret, const uint8_t *at)
{
    struct rd_slice text = text_at(at, CLUSTER_ADDRESS_MAX);
    memset(ret, 0, CLUSTER_ADDRESS_MAX + 1);
    if (text.len > 0)
        memcpy(ret, text.ptr, text.len);
}

static bool check_address(struct rd_slice bytes, size_t at, struct rd_err *err)
{
    struct rd_slice text = text_at(bytes.ptr + at, CLUSTER_ADDRESS_MAX + 1);
    return cluster_is_address(text) || rd_err_set(err, RD_ERR_CORRUPT, at, "not an address");
}

static bool no_master(const uint8_t *at)
{
    static const uint8_t zeros[CLUSTER_ID_LEN];
    return memcmp(at, zeros, sizeof zeros) == 0;
}

static bool read_header(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    const uint8_t *p = bytes.ptr;
    m->type = (enum cluster_message_type)rd_get_be16(p + CLUSTER_AT_TYPE);
    m->port = rd_get_be16(p + CLUSTER_AT_PORT);
    m->current_epoch = rd_get_be64(p + CLUSTER_AT_CURRENT_EPOCH);
    m->config_epoch = rd_get_be64(p + CLUSTER_AT_CONFIG_EPOCH);
    m->offset = rd_get_be64(p + CLUSTER_AT_OFFSET);
    memcpy(m->slots.bits, p + CLUSTER_AT_SLOTS, CLUSTER_SLOTS_BYTES);
    m->plain_port = rd_get_be16(p + CLUSTER_AT_PLAIN_PORT);
    m->bus_port = rd_get_be16(p + CLUSTER_AT_BUS_PORT);
    m->flags = rd_get_be16(p + CLUSTER_AT_FLAGS);
    m->down = p[CLUSTER_AT_STATE] != 0;
    memcpy(m->message_flags, p + CLUSTER_AT_MESSAGE_FLAGS, sizeof m->message_flags);
    if (!read_id(&m->sender, bytes, CLUSTER_AT_SENDER, "the sender", err) ||
        !check_address(bytes, CLUSTER_AT_ADDRESS, err))
        return false;
    get_address(m->address, p + CLUSTER_AT_ADDRESS);
    return no_master(p + CLUSTER_AT_MASTER) ||
           read_id(&m->master, bytes, CLUSTER_AT_MASTER, "the master", err);
}

/* ---- gossip and extensions ---- */

void cluster_gossip_at(const struct cluster_message *m, size_t i, struct cluster_gossip *ret)
{
    const uint8_t *p = m->gossip.ptr + i * CLUSTER_GOSSIP_LEN;
    get_id(&ret->id, p);
    ret->ping_s = rd_get_be32(p + CLUSTER_GOSSIP_AT_PING);
    ret->pong_s = rd_get_be32(p + CLUSTER_GOSSIP_AT_PONG);
    get_address(ret->address, p + CLUSTER_GOSSIP_AT_ADDRESS);
    ret->port = rd_get_be16(p + CLUSTER_GOSSIP_AT_PORT);
    ret->bus_port = rd_get_be16(p + CLUSTER_GOSSIP_AT_BUS_PORT);
    ret->flags = rd_get_be16(p + CLUSTER_GOSSIP_AT_FLAGS);
    ret->plain_port = rd_get_be16(p + CLUSTER_GOSSIP_AT_PLAIN_PORT);
}

static bool check_gossip(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    m->n_gossip = rd_get_be16(bytes.ptr + CLUSTER_AT_COUNT);
    size_t len = (size_t)m->n_gossip * CLUSTER_GOSSIP_LEN;
    if (len > bytes.len - CLUSTER_HEADER_LEN)
        return rd_err_set(err, RD_ERR_CORRUPT, CLUSTER_AT_COUNT,
                          "%u gossip entries are more than the message has", m->n_gossip);
    m->gossip = rd_slice(bytes.ptr + CLUSTER_HEADER_LEN, len);
    for (size_t i = 0; i < m->n_gossip; i++) {
        size_t at = CLUSTER_HEADER_LEN + i * CLUSTER_GOSSIP_LEN;
        if (!is_id(bytes.ptr + at))
            return rd_err_set(err, RD_ERR_CORRUPT, at, "the id of a gossip entry is none");
        if (!check_address(bytes, at + CLUSTER_GOSSIP_AT_ADDRESS, err))
            return false;
    }
    return true;
}

static bool is_text(unsigned type)
{
    return type == CLUSTER_EXTENSION_HOSTNAME || type == CLUSTER_EXTENSION_HUMAN_NAME;
}

/* What is wrong with the content of an extension, or NULL. */
static const char *extension_fault(unsigned type, struct rd_slice content)
{
    struct rd_slice text = text_at(content.ptr, content.len);
    switch (type) {
    case CLUSTER_EXTENSION_HOSTNAME:
        return text.len < content.len && cluster_is_hostname(text) ? NULL : "not a hostname";
    case CLUSTER_EXTENSION_HUMAN_NAME:
        return text.len < content.len && cluster_is_human_name(text) ? NULL : "not a name";
    case CLUSTER_EXTENSION_FORGOTTEN:
        return content.len == CLUSTER_ID_LEN + 8 && is_id(content.ptr) ? NULL : "not an id";
    case CLUSTER_EXTENSION_SHARD:
        return content.len == CLUSTER_ID_LEN && is_id(content.ptr) ? NULL : "not a shard";
    default:
        return NULL;
    }
}

static bool check_extensions(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    size_t at = CLUSTER_HEADER_LEN + m->gossip.len;
    m->n_extensions = rd_get_be16(bytes.ptr + CLUSTER_AT_EXTENSIONS);
    m->extensions = rd_slice(bytes.ptr + at, bytes.len - at);
    for (unsigned i = 0; i < m->n_extensions; i++) {
        size_t left = bytes.len - at, len = 0;
        if (left >= CLUSTER_EXTENSION_HEAD)
            len = rd_get_be32(bytes.ptr + at);
        if (len < CLUSTER_EXTENSION_HEAD || len > left || len % 8 != 0)
            return rd_err_set(err, RD_ERR_CORRUPT, at, "extension %u of %u does not fit", i + 1,
                              m->n_extensions);
        const char *fault = extension_fault(
            rd_get_be16(bytes.ptr + at + CLUSTER_EXTENSION_AT_TYPE),
            rd_slice(bytes.ptr + at + CLUSTER_EXTENSION_HEAD, len - CLUSTER_EXTENSION_HEAD));
        if (fault != NULL)
            return rd_err_set(err, RD_ERR_CORRUPT, at, "extension %u: %s", i + 1, fault);
        at += len;
    }
    return at == bytes.len || rd_err_set(err, RD_ERR_CORRUPT, at,
                                         "%zu bytes after the last extension", bytes.len - at);
}

bool cluster_extension_next(const struct cluster_message *m, size_t *at,
                            struct cluster_extension *ret)
{
    if (*at >= m->extensions.len)
        return false;
    const uint8_t *p = m->extensions.ptr + *at;
    size_t len = rd_get_be32(p);
    *ret = (struct cluster_extension){.type = rd_get_be16(p + CLUSTER_EXTENSION_AT_TYPE)};
    ret->content = rd_slice(p + CLUSTER_EXTENSION_HEAD, len - CLUSTER_EXTENSION_HEAD);
    if (is_text(ret->type))
        ret->content = text_at(ret->content.ptr, ret->content.len);
    if (ret->type == CLUSTER_EXTENSION_FORGOTTEN || ret->type == CLUSTER_EXTENSION_SHARD)
        get_id(&ret->id, ret->content.ptr);
    if (ret->type == CLUSTER_EXTENSION_FORGOTTEN)
        ret->seconds = rd_get_be64(ret->content.ptr + CLUSTER_ID_LEN);
    *at += len;
    return true;
}

/* ---- bodies ---- */

static bool expect_len(struct rd_slice bytes, uint64_t len, struct rd_err *err)
{
    return bytes.len == len || rd_err_set(err, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH,
                                          "%zu bytes instead of %ju", bytes.len, (uintmax_t)len);
}

static bool read_publish(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    const size_t head = CLUSTER_HEADER_LEN + 8;
    if (bytes.len < head)
        return expect_len(bytes, head, err);
    uint64_t channel = rd_get_be32(bytes.ptr + CLUSTER_HEADER_LEN);
    uint64_t payload = rd_get_be32(bytes.ptr + CLUSTER_HEADER_LEN + 4);
    if (!expect_len(bytes, head + channel + payload, err))
        return false;
    m->channel = rd_slice(bytes.ptr + head, (size_t)channel);
    m->payload = rd_slice(bytes.ptr + head + channel, (size_t)payload);
    return true;
}

static bool read_update(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    const size_t at = CLUSTER_HEADER_LEN;
    if (!expect_len(bytes, at + CLUSTER_UPDATE_LEN, err))
        return false;
    m->about_epoch = rd_get_be64(bytes.ptr + at);
    memcpy(m->about_slots.bits, bytes.ptr + at + 8 + CLUSTER_ID_LEN, CLUSTER_SLOTS_BYTES);
    return read_id(&m->about, bytes, at + 8, "the node", err);
}

static bool read_module(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    const size_t at = CLUSTER_HEADER_LEN, head = at + CLUSTER_MODULE_HEAD;
    if (bytes.len < head)
        return expect_len(bytes, head, err);
    uint64_t len = rd_get_be32(bytes.ptr + at + 8);
    if (!expect_len(bytes, head + len, err))
        return false;
    m->module = rd_get_be64(bytes.ptr + at);
    m->module_type = bytes.ptr[at + 12];
    m->payload = rd_slice(bytes.ptr + head, (size_t)len);
    return true;
}

static bool read_body(struct cluster_message *m, struct rd_slice bytes, struct rd_err *err)
{
    switch (m->type) {
    case CLUSTER_MESSAGE_PING:
    case CLUSTER_MESSAGE_PONG:
    case CLUSTER_MESSAGE_MEET:
        return check_gossip(m, bytes, err) && check_extensions(m, bytes, err);
    case CLUSTER_MESSAGE_FAIL:
        return expect_len(bytes, CLUSTER_HEADER_LEN + CLUSTER_ID_LEN, err) &&
               read_id(&m->about, bytes, CLUSTER_HEADER_LEN, "the node", err);
    case CLUSTER_MESSAGE_PUBLISH:
    case CLUSTER_MESSAGE_PUBLISH_SHARD:
        return read_publish(m, bytes, err);
    case CLUSTER_MESSAGE_UPDATE:
        return read_update(m, bytes, err);
    case CLUSTER_MESSAGE_MODULE:
        return read_module(m, bytes, err);
    case CLUSTER_MESSAGE_AUTH_REQUEST:
    case CLUSTER_MESSAGE_AUTH_ACK:
    case CLUSTER_MESSAGE_MFSTART:
        return expect_len(bytes, CLUSTER_HEADER_LEN, err);
    }
    return rd_err_set(err, RD_ERR_UNSUPPORTED, CLUSTER_AT_TYPE, "a message of type %u",
                      (unsigned)m->type);
}

bool cluster_message_read(struct cluster_message *ret, struct rd_slice bytes, struct rd_err *err)
{
    size_t len;
    enum cluster_frame frame = cluster_message_frame(bytes, &len, err);
    if (frame == CLUSTER_FRAME_BAD)
        return false;
    if (frame == CLUSTER_FRAME_MORE)
        return rd_err_set(err, RD_ERR_TRUNCATED, bytes.len, "the message is not complete");
    if (len != bytes.len)
        return rd_err_set(err, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH, "not the length of the message");
    unsigned version = rd_get_be16(bytes.ptr + CLUSTER_AT_VERSION);
    if (version != CLUSTER_PROTOCOL)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, CLUSTER_AT_VERSION, "protocol %u", version);
    struct cluster_message m = {.type = CLUSTER_MESSAGE_PING};
    if (!read_header(&m, bytes, err) || !read_body(&m, bytes, err))
        return false;
    *ret = m;
    return true;
}
