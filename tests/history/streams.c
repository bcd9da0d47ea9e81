#include "tests/history/streams.h"

#include "engine/effects.h"
#include "engine/engine.h"
#include "engine/reply.h"
#include "engine/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Words: K a key, E an element, N a small number, S a score, T a time to come. */
static const char *const templates[] = {
    "SET K E",
    "SET K N EX 9000",
    "APPEND K E",
    "SETRANGE K N E",
    "SETBIT K N 1",
    "INCRBY K N",
    "GETSET K E",
    "GETDEL K",
    "DEL K",
    "UNLINK K K",
    "MSET K E K N",
    "SETNX K E",
    "RPUSH K E E",
    "LPUSH K E E E",
    "RPOP K N",
    "LPOP K",
    "LSET K 0 E",
    "LINSERT K BEFORE E E",
    "LREM K N E",
    "LTRIM K 0 4",
    "RPOPLPUSH K K",
    "LMOVE K K LEFT RIGHT",
    "LMPOP 2 K K LEFT",
    "SADD K E E",
    "SREM K E",
    "SPOP K",
    "SMOVE K K E",
    "SUNIONSTORE K K K",
    "SDIFFSTORE K K K",
    "SINTERSTORE K K K",
    "SORT K BY nosort STORE K",
    "SORT K ALPHA STORE K",
    "SORT K BY * ALPHA GET # GET * STORE K",
    "HSET K E E E N",
    "HDEL K E",
    "HINCRBY K E N",
    "HSETNX K E E",
    "ZADD K S E S E",
    "ZREM K E",
    "ZINCRBY K S E",
    "ZPOPMIN K",
    "ZREMRANGEBYRANK K 0 0",
    "ZREMRANGEBYSCORE K 0 S",
    "ZUNIONSTORE K 2 K K",
    "ZRANGESTORE K K 0 2",
    "ZDIFFSTORE K 2 K K",
    "PFADD K E",
    "PFMERGE K K",
    "BITOP XOR K K K",
    "GEOADD K 1 2 E",
    "XADD K * E E",
    "XADD K MAXLEN 3 * E E",
    "XTRIM K MAXLEN 2",
    "XGROUP CREATE K E 0 MKSTREAM",
    "XREADGROUP GROUP E E COUNT N STREAMS K >",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K REPLACE",
    "COPY K K DB 1 REPLACE",
    "MOVE K 1",
    "EXPIRE K T",
    "PERSIST K",
    "SWAPDB 0 1",
    "FLUSHDB",
    "SELECT 0",
    "SELECT 1",
    "SELECT 0",
    "EVAL return_redis.call('set',KEYS[1],redis.call('incr',KEYS[2])) 2 K K",
    "EVAL return_redis.call('sadd',ARGV[1],ARGV[2]) 0 K E",
    "EVAL return_redis.call('rpush',KEYS[1],redis.call('llen',ARGV[1])) 1 K K",
    "MULTI",
    "EXEC",
};

uint64_t streams_draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct rd_slice streams_key(unsigned i)
{
    static const char names[] = "abcdefgh";
    assert(i < STREAMS_KEYS);
    return rd_slice(names + i, 1);
}

enum { WORDS = 16 };

struct words {
    size_t n;
    struct rd_slice argv[WORDS];
    char text[WORDS][80];
};

/* Each type has favourite keys, so that most commands succeed. */
static void fill_word(struct words *w, const char *word, size_t len, unsigned family,
                      uint64_t *state)
{
    char *text = w->text[w->n];
    uint64_t draw = streams_draw(state);
    size_t n;
    if (len == 1 && word[0] == 'K') {
        unsigned key = draw % 8 == 0 ? (unsigned)(draw / 8 % STREAMS_KEYS)
                                     : (family + (unsigned)(draw / 8 % 2)) % STREAMS_KEYS;
        text[0] = (char)streams_key(key).ptr[0];
        n = 1;
    } else if (len == 1 && word[0] == 'E')
        n = (size_t)sprintf(text, "%c", (char)('a' + draw % 8));
    else if (len == 1 && word[0] == 'N')
        n = (size_t)sprintf(text, "%u", (unsigned)(1 + draw % 4));
    else if (len == 1 && word[0] == 'S')
        n = (size_t)sprintf(text, "%u.5", (unsigned)(draw % 9));
    else if (len == 1 && word[0] == 'T')
        n = (size_t)sprintf(text, "%u", (unsigned)(1000 + draw % 9000));
    else {
        n = len;
        for (size_t i = 0; i < len; i++)
            text[i] = word[i] == '_' ? ' ' : word[i];
    }
    w->argv[w->n++] = rd_slice(text, n);
}

static void fill(struct words *w, uint64_t *state)
{
    size_t which = streams_draw(state) % (sizeof templates / sizeof *templates);
    const char *at = templates[which];
    unsigned family = (unsigned)(which / 12) * 2;
    w->n = 0;
    while (*at != '\0') {
        size_t len = strcspn(at, " ");
        fill_word(w, at, len, family, state);
        at += len + (at[len] == ' ');
    }
}

static bool is_script(const struct words *w)
{
    return rd_slice_is(w->argv[0], "EVAL");
}

void streams_make(uint64_t seed, unsigned n_commands, struct rd_buf *ret)
{
    struct engine_config config;
    struct engine_session session;
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {0};
    struct rd_sink *sink;
    uint64_t state = seed * 2654435761U + 1;
    unsigned db = UINT32_MAX;
    engine_config_init(&config);
    config.databases = STREAMS_DBS;
    struct engine *e = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&session, e, ENGINE_CLIENT);
    bool opened = rd_sink_open_buf(&sink, ret, NULL, NULL);
    assert(opened);
    for (unsigned i = 0; i < n_commands; i++) {
        struct words w;
        const struct engine_env env = {.now_us = 1000000000000000 + (int64_t)i * 1000000};
        fill(&w, &state);
        engine_reply_reset(&reply);
        engine_effects_reset(&fx);
        engine_apply(e, &session, w.n, w.argv, &env, &reply, &fx);
        if (seed % 2 == 1 && is_script(&w) && fx.n > 0 && !reply.error && !session.in_multi) {
            engine_effects_reset(&fx);
            engine_effects_add(&fx, session.db, w.n, w.argv);
        }
        engine_effects_write(&fx, sink, &db);
    }
    bool closed = rd_sink_close(sink, NULL);
    assert(closed);
    engine_session_done(&session);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
    engine_delete(e);
}
