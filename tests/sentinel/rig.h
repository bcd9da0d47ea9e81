/* rig.h - a Sentinel under test, with servers and other Sentinels that answer at once.
 *
 *     struct rig rig;
 *     rig_begin(&rig, "monitor m 10.0.0.1 6379 2\n");
 *     rig_peer(&rig, 6379)->info = "role:master\r\n…";
 *     rig_pass(&rig, 5000);                    // ticks, and answers
 *     cr_expect_str_eq(rig_events(&rig), "+slave slave 10.0.0.1:6380 …\n");
 *     rig_end(&rig);
 *
 * A peer is known by its port alone. What was done is text: a line for each event in `events`, for
 * each command in `sent` ("6379 PING"), and for all else in `other`.
 */
#ifndef TESTS_SENTINEL_RIG_H
#define TESTS_SENTINEL_RIG_H

#include <criterion/criterion.h>

#include "sentinel/sentinel_impl.h"

enum { RIG_PEERS = 16, RIG_CONNS = 4096 };

#define RIG_ME "1111111111111111111111111111111111111111"
#define RIG_B  "2222222222222222222222222222222222222222"
#define RIG_C  "3333333333333333333333333333333333333333"

/* The lines of B and C, which watch m as well. */
#define RIG_OTHERS                                                                                 \
    "known-sentinel m 10.0.1.2 26380 " RIG_B "\nknown-sentinel m 10.0.1.3 26381 " RIG_C "\n"

struct rig_peer {
    int port;
    bool dead;   /* connections are refused */
    bool silent; /* nothing is answered */
    const char *info;
    const char *pong;   /* NULL: "+PONG" */
    const char *leader; /* a Sentinel: its vote; NULL: "*" */
    uint64_t leader_epoch;
    bool says_down;
};

struct rig_conn {
    int port;
    bool pubsub;
};

struct rig {
    struct sentinel *s;
    int64_t now_ms;
    uint64_t random;
    struct rig_peer peers[RIG_PEERS];
    struct rig_conn conns[RIG_CONNS]; /* by number */
    struct rd_buf events, sent, other, file;
    bool save_fails, no_answers;
    const char *resolved; /* the address of every name; NULL: none has one */
    bool scripts_exist;
};

void rig_begin(struct rig *rig, const char *lines);
void rig_end(struct rig *rig); /* does nothing the second time */

/* Without a Sentinel: sets only what the functions of its options use. */
void rig_prepare(struct rig *rig);
void rig_prepare_faulty(struct rig *rig); /* s is NULL if memory is exhausted */
/* NULL: read; or what is wrong. */
const char *rig_load(struct rig *rig, const char *lines);

struct rig_peer *rig_peer(struct rig *rig, int port);
/* A peer neither answers nor accepts connections any more. */
void rig_lose(struct rig *rig, int port);
/* And its connections are closed. */
void rig_kill(struct rig *rig, int port);
/* Does what the Sentinel asks for. */
void rig_act(struct rig *rig);
void rig_tick(struct rig *rig);
void rig_pass(struct rig *rig, int64_t ms);
/* A message on the channel of a server. */
void rig_hello(struct rig *rig, int port, const char *text);
struct sentinel_instance *rig_master(struct rig *rig);

/* The text so far, which is then forgotten. */
const char *rig_events(struct rig *rig);
const char *rig_sent(struct rig *rig);
const char *rig_other(struct rig *rig);
/* The lines of the configuration. */
const char *rig_file(struct rig *rig);
/* Whether a line was among them. */
bool rig_has(const char *text, const char *line);

#endif
