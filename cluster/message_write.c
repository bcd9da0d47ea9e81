#include "base/endian.h"
#include "cluster/message.h"
#include "cluster/message_impl.h"
#include "cluster/nodes_conf.h"

static void put_id(uint8_t *at, const struct cluster_id *id)
{
    if (id->s[0] != 0)
        memcpy(at, id->s, CLUSTER_ID_LEN);
}

static void put_address(uint8_t *at, const char *address)
{
    memcpy(at, address, strnlen(address, CLUSTER_ADDRESS_MAX));
}

bool cluster_gossip_add(struct rd_buf *bytes, const struct cluster_gossip *entry)
{
    uint8_t p[CLUSTER_GOSSIP_LEN] = {0};
    put_id(p, &entry->id);
    rd_put_be32(p + CLUSTER_GOSSIP_AT_PING, entry->ping_s);
    rd_put_be32(p + CLUSTER_GOSSIP_AT_PONG, entry->pong_s);
    put_address(p + CLUSTER_GOSSIP_AT_ADDRESS, entry->address);
    rd_put_be16(p + CLUSTER_GOSSIP_AT_PORT, entry->port);
    rd_put_be16(p + CLUSTER_GOSSIP_AT_BUS_PORT, entry->bus_port);
    rd_put_be16(p + CLUSTER_GOSSIP_AT_FLAGS, (uint16_t)entry->flags);
    rd_put_be16(p + CLUSTER_GOSSIP_AT_PLAIN_PORT, entry->plain_port);
    return rd_buf_add(bytes, p, sizeof p);
}

/* ---- extensions ---- */

static bool add_extension(struct rd_buf *bytes, unsigned type, struct rd_slice content,
                          size_t padded)
{
    uint8_t head[CLUSTER_EXTENSION_HEAD] = {0};
    static const uint8_t zeros[8];
    rd_put_be32(head, (uint32_t)(CLUSTER_EXTENSION_HEAD + padded));
    rd_put_be16(head + CLUSTER_EXTENSION_AT_TYPE, (uint16_t)type);
    size_t before = bytes->len;
    bool ok = rd_buf_add(bytes, head, sizeof head) &&
              (content.len == 0 || rd_buf_add(bytes, content.ptr, content.len)) &&
              rd_buf_add(bytes, zeros, padded - content.len);
    if (!ok)
        bytes->len = before;
    return ok;
}

static size_t pad(size_t len)
{
    return (len + 7) / 8 * 8;
}

bool cluster_extension_add(struct rd_buf *bytes, const struct cluster_extension *extension)
{
    uint8_t fixed[CLUSTER_ID_LEN + 8];
    struct rd_slice content = extension->content;
    switch (extension->type) {
    case CLUSTER_EXTENSION_HOSTNAME:
    case CLUSTER_EXTENSION_HUMAN_NAME: /* with a zero at the end */
        return add_extension(bytes, extension->type, content, pad(content.len + 1));
    case CLUSTER_EXTENSION_FORGOTTEN:
        memcpy(fixed, extension->id.s, CLUSTER_ID_LEN);
        rd_put_be64(fixed + CLUSTER_ID_LEN, extension->seconds);
        return add_extension(bytes, extension->type, rd_slice(fixed, sizeof fixed), sizeof fixed);
    case CLUSTER_EXTENSION_SHARD:
        memcpy(fixed, extension->id.s, CLUSTER_ID_LEN);
        return add_extension(bytes, extension->type, rd_slice(fixed, CLUSTER_ID_LEN),
                             CLUSTER_ID_LEN);
    default:
        return add_extension(bytes, extension->type, content, pad(content.len));
    }
}

/* ---- messages ---- */

static size_t body_len(const struct cluster_message *m)
{
    switch (m->type) {
    case CLUSTER_MESSAGE_PING:
    case CLUSTER_MESSAGE_PONG:
    case CLUSTER_MESSAGE_MEET:
        return m->gossip.len + m->extensions.len;
    case CLUSTER_MESSAGE_FAIL:
        return CLUSTER_ID_LEN;
    case CLUSTER_MESSAGE_PUBLISH:
    case CLUSTER_MESSAGE_PUBLISH_SHARD:
        return 8 + m->channel.len + m->payload.len;
    case CLUSTER_MESSAGE_UPDATE:
        return CLUSTER_UPDATE_LEN;
    case CLUSTER_MESSAGE_MODULE:
        return CLUSTER_MODULE_HEAD + m->payload.len;
    case CLUSTER_MESSAGE_AUTH_REQUEST:
    case CLUSTER_MESSAGE_AUTH_ACK:
    case CLUSTER_MESSAGE_MFSTART:
        break;
    }
    return 0;
}

static void put_header(uint8_t *p, const struct cluster_message *m, size_t len)
{
    memcpy(p, CLUSTER_SIGNATURE, CLUSTER_SIGNATURE_LEN);
    rd_put_be32(p + CLUSTER_AT_LENGTH, (uint32_t)len);
    rd_put_be16(p + CLUSTER_AT_VERSION, CLUSTER_PROTOCOL);
    rd_put_be16(p + CLUSTER_AT_PORT, m->port);
    rd_put_be16(p + CLUSTER_AT_TYPE, (uint16_t)m->type);
    rd_put_be16(p + CLUSTER_AT_COUNT, m->n_gossip);
    rd_put_be64(p + CLUSTER_AT_CURRENT_EPOCH, m->current_epoch);
    rd_put_be64(p + CLUSTER_AT_CONFIG_EPOCH, m->config_epoch);
    rd_put_be64(p + CLUSTER_AT_OFFSET, m->offset);
    put_id(p + CLUSTER_AT_SENDER, &m->sender);
    memcpy(p + CLUSTER_AT_SLOTS, m->slots.bits, CLUSTER_SLOTS_BYTES);
    put_id(p + CLUSTER_AT_MASTER, &m->master);
    put_address(p + CLUSTER_AT_ADDRESS, m->address);
    rd_put_be16(p + CLUSTER_AT_EXTENSIONS, m->n_extensions);
    rd_put_be16(p + CLUSTER_AT_PLAIN_PORT, m->plain_port);
    rd_put_be16(p + CLUSTER_AT_BUS_PORT, m->bus_port);
    rd_put_be16(p + CLUSTER_AT_FLAGS, (uint16_t)m->flags);
    p[CLUSTER_AT_STATE] = m->down;
    memcpy(p + CLUSTER_AT_MESSAGE_FLAGS, m->message_flags, sizeof m->message_flags);
}

static void put_bytes(uint8_t **at, struct rd_slice bytes)
{
    if (bytes.len > 0)
        memcpy(*at, bytes.ptr, bytes.len);
    *at += bytes.len;
}

static void put_body(uint8_t *p, const struct cluster_message *m)
{
    switch (m->type) {
    case CLUSTER_MESSAGE_PING:
    case CLUSTER_MESSAGE_PONG:
    case CLUSTER_MESSAGE_MEET:
        put_bytes(&p, m->gossip);
        put_bytes(&p, m->extensions);
        break;
    case CLUSTER_MESSAGE_FAIL:
        put_id(p, &m->about);
        break;
    case CLUSTER_MESSAGE_PUBLISH:
    case CLUSTER_MESSAGE_PUBLISH_SHARD:
        rd_put_be32(p, (uint32_t)m->channel.len);
        rd_put_be32(p + 4, (uint32_t)m->payload.len);
        p += 8;
        put_bytes(&p, m->channel);
        put_bytes(&p, m->payload);
        break;
    case CLUSTER_MESSAGE_UPDATE:
        rd_put_be64(p, m->about_epoch);
        put_id(p + 8, &m->about);
        memcpy(p + 8 + CLUSTER_ID_LEN, m->about_slots.bits, CLUSTER_SLOTS_BYTES);
        break;
    case CLUSTER_MESSAGE_MODULE:
        rd_put_be64(p, m->module);
        rd_put_be32(p + 8, (uint32_t)m->payload.len);
        p[12] = m->module_type;
        p += CLUSTER_MODULE_HEAD;
        put_bytes(&p, m->payload);
        break;
    case CLUSTER_MESSAGE_AUTH_REQUEST:
    case CLUSTER_MESSAGE_AUTH_ACK:
    case CLUSTER_MESSAGE_MFSTART:
        break;
    }
}

bool cluster_message_write(const struct cluster_message *m, struct rd_buf *bytes)
{
    size_t len = CLUSTER_HEADER_LEN + body_len(m);
    if (!rd_buf_reserve(bytes, len))
        return false;
    uint8_t *p = bytes->ptr + bytes->len;
    memset(p, 0, len);
    put_header(p, m, len);
    put_body(p + CLUSTER_HEADER_LEN, m);
    bytes->len += len;
    return true;
}
