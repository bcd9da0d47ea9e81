/* message.h - the messages that the nodes of a cluster send each other over their bus.
 *
 * A message has a header of CLUSTER_HEADER_LEN bytes and a body. Numbers are big-endian.
 *
 *        0  "RCmb"               4  length of all, 4 bytes     8  version of the protocol, 1
 *       10  port                12  type                      14  gossip entries
 *       16  current epoch       24  configuration epoch       32  offset of the replication
 *       40  id of the sender    80  its slots                2128 id of its master, or zeros
 *     2168  its address, if it announces one                 2214 number of extensions
 *     2216  unused              2246 port without TLS        2248 port of the bus
 *     2250  flags of a node     2252 state of the cluster    2253 flags of the message, 3 bytes
 *
 * The epoch and the slots of a replica's message are those of its master. The bodies:
 *
 *     PING, PONG, MEET      entries of 104 bytes about other nodes, then extensions: length with
 *                           these 8 bytes, type, unused, content; padded to a multiple of 8
 *     FAIL                  id of the node that failed
 *     PUBLISH,              length of the channel, length of the payload, both
 *     PUBLISH_SHARD
 *     UPDATE                configuration epoch, id and slots of a node
 *     MODULE                id of the module, length, type, payload
 *     others                nothing
 *
 * (Recorded from servers 7.0.15, 8.6.3 and Valkey 9.1.2: fixtures/.../bus.bin.)
 *
 *     struct cluster_message m;
 *     struct rd_err err = {0};
 *     size_t len;
 *     while (cluster_message_frame(received, &len, &err) == CLUSTER_FRAME_READY) {
 *         if (cluster_message_read(&m, rd_slice(received.ptr, len), &err))
 *             ...
 *         received = rd_slice(received.ptr + len, received.len - len);
 *     }
 *
 * Threads: any thread may call everything. Ownership: a message that was read borrows the slices in
 * it from the bytes. Errors: false and *err: CORRUPT with the offset of the first wrong byte,
 * UNSUPPORTED for a version or type that is not known, TRUNCATED for a part of a message; after the
 * first two, the next message can be read.
 * Cost: linear in the length.
 */
#ifndef CLUSTER_MESSAGE_H
#define CLUSTER_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "cluster/slots.h"

enum {
    CLUSTER_HEADER_LEN = 2256,
    CLUSTER_GOSSIP_LEN = 104,
    CLUSTER_PROTOCOL = 1,
    CLUSTER_ADDRESS_MAX = 45,
    CLUSTER_NAME_MAX = 255, /* a hostname, or a name for people */
    CLUSTER_MESSAGE_MAX = 1 << 30,
    CLUSTER_SHORT_MAX = 1 << 16,     /* a message of a stranger, or without a body of any length */
    CLUSTER_EXTENSIONS_MAX = 1 << 20 /* all of a message */
};

/* name, number, word in statistics */
#define CLUSTER_MESSAGES(X)                                                                        \
    X(PING, 0, "ping")                                                                             \
    X(PONG, 1, "pong")                                                                             \
    X(MEET, 2, "meet")                                                                             \
    X(FAIL, 3, "fail")                                                                             \
    X(PUBLISH, 4, "publish")                                                                       \
    X(AUTH_REQUEST, 5, "auth-req")                                                                 \
    X(AUTH_ACK, 6, "auth-ack")                                                                     \
    X(UPDATE, 7, "update")                                                                         \
    X(MFSTART, 8, "mfstart")                                                                       \
    X(MODULE, 9, "module")                                                                         \
    X(PUBLISH_SHARD, 10, "publishshard")

enum cluster_message_type {
#define X(name, number, word) CLUSTER_MESSAGE_##name = number,
    CLUSTER_MESSAGES(X)
#undef X
};
enum {
#define X(name, number, word) +1
    CLUSTER_N_MESSAGES = CLUSTER_MESSAGES(X)
#undef X
};

/* Flags of a node, as messages have them. */
enum cluster_bus_flag {
    CLUSTER_BUS_MASTER = 1,
    CLUSTER_BUS_REPLICA = 2,
    CLUSTER_BUS_MAYBE_FAILED = 4,
    CLUSTER_BUS_FAILED = 8,
    CLUSTER_BUS_MYSELF = 16,
    CLUSTER_BUS_HANDSHAKE = 32,
    CLUSTER_BUS_NO_ADDRESS = 64,
    CLUSTER_BUS_MEET = 128,
    CLUSTER_BUS_MIGRATE_TO = 256, /* a master that had replicas */
    CLUSTER_BUS_NO_FAILOVER = 512,
    CLUSTER_BUS_EXTENSIONS = 1024 /* it reads extensions */
};

/* Flags of a message. */
enum cluster_message_flag {
    CLUSTER_MESSAGE_PAUSED = 1,    /* the sender lets clients wait for a manual failover */
    CLUSTER_MESSAGE_FORCE_ACK = 2, /* vote although the master is up */
    CLUSTER_MESSAGE_HAS_EXTENSIONS = 4
};

enum cluster_extension_type {
    CLUSTER_EXTENSION_HOSTNAME = 0,   /* text */
    CLUSTER_EXTENSION_HUMAN_NAME = 1, /* text */
    CLUSTER_EXTENSION_FORGOTTEN = 2,  /* id, and for how many seconds, 8 bytes */
    CLUSTER_EXTENSION_SHARD = 3       /* 40 bytes */
};

/* A text of 40 digits and letters, or "". */
struct cluster_id {
    char s[41];
};

struct cluster_message {
    enum cluster_message_type type;
    uint64_t current_epoch, config_epoch, offset;
    struct cluster_id sender;
    struct cluster_slots slots;
    struct cluster_id master;              /* "": none */
    char address[CLUSTER_ADDRESS_MAX + 1]; /* "": that of the connection */
    uint16_t port, plain_port, bus_port;
    unsigned flags; /* of enum cluster_bus_flag; others are kept */
    bool down;      /* the sender's view of the cluster */
    uint8_t message_flags[3];

    uint16_t n_gossip, n_extensions;    /* of PING, PONG, MEET */
    struct rd_slice gossip, extensions; /* PING, PONG, MEET: as they are in the message */
    struct cluster_id about;            /* FAIL, UPDATE */
    uint64_t about_epoch;               /* UPDATE */
    struct cluster_slots about_slots;   /* UPDATE */
    uint64_t module;                    /* MODULE */
    uint8_t module_type;                /* MODULE */
    struct rd_slice channel;            /* PUBLISH, PUBLISH_SHARD */
    struct rd_slice payload;            /* these, and MODULE */
};

/* What a message says of another node. */
struct cluster_gossip {
    struct cluster_id id;
    uint32_t ping_s, pong_s; /* Unix times; 0: none is under way, or none came */
    char address[CLUSTER_ADDRESS_MAX + 1];
    uint16_t port, plain_port, bus_port;
    unsigned flags;
};

struct cluster_extension {
    unsigned type;
    struct rd_slice content; /* padded; of a text, without the padding */
    struct cluster_id id;    /* FORGOTTEN, SHARD */
    uint64_t seconds;        /* FORGOTTEN */
};

enum cluster_frame {
    CLUSTER_FRAME_READY,
    CLUSTER_FRAME_MORE, /* bytes are missing */
    CLUSTER_FRAME_BAD   /* not a message: err is set, and the connection is of no use */
};

/* The length of the message at the beginning of `bytes`. */
enum cluster_frame cluster_message_frame(struct rd_slice bytes, size_t *ret_len,
                                         struct rd_err *err);

/* The id of the sender, and how long a message with these first CLUSTER_HEADER_LEN bytes can be.
 * Nodes publish, and modules send, up to CLUSTER_MESSAGE_MAX if the sender is known; else nobody
 * reads it. */
void cluster_message_sender(struct rd_slice header, struct cluster_id *ret);
size_t cluster_message_max(struct rd_slice header, bool known);

/* Reads exactly one message. */
bool cluster_message_read(struct cluster_message *ret, struct rd_slice bytes, struct rd_err *err);

/* i < n_gossip. */
void cluster_gossip_at(const struct cluster_message *m, size_t i, struct cluster_gossip *ret);

/* Reads the extension at *at, which is 0 at first. False: there are no more. */
bool cluster_extension_next(const struct cluster_message *m, size_t *at,
                            struct cluster_extension *ret);

/* Appends to the bytes for `gossip` and `extensions`. False: out of memory. */
bool cluster_gossip_add(struct rd_buf *bytes, const struct cluster_gossip *entry);
/* The content of unknown types is written as it is; it is not longer than 65,535 bytes. */
bool cluster_extension_add(struct rd_buf *bytes, const struct cluster_extension *extension);

/* Appends a message. False: out of memory. */
bool cluster_message_write(const struct cluster_message *m, struct rd_buf *bytes);

/* "ping". */
const char *cluster_message_word(enum cluster_message_type type);

/* Whether the text can be the address of a node in a message. */
bool cluster_is_address(struct rd_slice text);
/* Whether the text can be a hostname: letters, digits, '.' and '-'. */
bool cluster_is_hostname(struct rd_slice text);
/* Whether the text can be a name for people in a line of nodes.conf. */
bool cluster_is_human_name(struct rd_slice text);

static inline bool cluster_id_eq(const struct cluster_id *a, const struct cluster_id *b)
{
    return memcmp(a->s, b->s, sizeof a->s) == 0;
}

#endif
