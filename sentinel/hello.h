/* hello.h - the message by which Sentinels find each other.
 *
 * Every Sentinel publishes it on the channel __sentinel__:hello of each master and replica that it
 * monitors, and sends it to the other Sentinels with PUBLISH:
 *
 *     IP,PORT,ID,EPOCH,NAME,MASTER-IP,MASTER-PORT,MASTER-EPOCH
 *
 *     ip, port        address of the Sentinel, or the name of its host
 *     id              its 40 hexadecimal digits
 *     epoch           its current epoch
 *     name            of the master, as the Sentinels are configured
 *     master-ip, …    address of the master, and the epoch of the failover that made it the master
 *
 *     struct sentinel_hello hello;
 *     if (sentinel_hello_read(text, &hello))
 *         ... hello.name is a part of text ...
 *
 * Threads: any thread may call everything. Ownership: what is read borrows from the text. Errors:
 * false is a text that is no such message. Cost: linear in the length of the text.
 */
#ifndef SENTINEL_HELLO_H
#define SENTINEL_HELLO_H

#include "base/buf.h"
#include "base/slice.h"

struct sentinel_hello {
    struct rd_slice host;
    int port;
    struct rd_slice id;
    uint64_t epoch;
    struct rd_slice name;
    struct rd_slice master_host;
    int master_port;
    uint64_t master_epoch;
};

/* Ports are 0 to 65535. *ret is written on success only. */
bool sentinel_hello_read(struct rd_slice text, struct sentinel_hello *ret);

/* Appends the message. False: out of memory. */
bool sentinel_hello_write(const struct sentinel_hello *hello, struct rd_buf *out);

#endif
