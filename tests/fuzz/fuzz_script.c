/* fuzz_script.c - scripts: any text as a script or a library, and any bytes for the libraries that
 * read bytes.
 *
 * The first byte selects the script; the rest is its argument, or the script itself. A script is
 * ended after some time. The output of cmsgpack and cjson must be readable again, and nothing is
 * leaked when the engine is freed.
 */
#include "engine/session.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096, TICKS = 3, START_S = 1700000000 };

static unsigned ticks;

static bool on_tick(void *ctx, const struct engine_running *running)
{
    (void)ctx, (void)running;
    return ++ticks > TICKS;
}

static struct rd_slice text(const char *s)
{
    return rd_slice_str(s);
}

static const char *const scripts[] = {
    "return {cmsgpack.unpack(ARGV[1])}",
    "local t = {cmsgpack.unpack(ARGV[1])} "
    "for i = 1, #t do local p = cmsgpack.pack(t[i]) "
    "assert(cmsgpack.pack((cmsgpack.unpack(p))) == p or type(t[i]) == 'table') end return #t",
    "return {cmsgpack.unpack_limit(ARGV[1], 3, #ARGV[1] % 7)}",
    "local n = ARGV[1]:find('\\0', 1, true) or 1 "
    "return {struct.unpack(ARGV[1]:sub(1, n - 1), ARGV[1]:sub(n))}",
    "return {struct.size(ARGV[1])}",
    "return struct.pack(ARGV[1], 1, -2, 3.5, 'abc', 5, 6, 'x', 8)",
    "return cjson.encode(cjson.decode(ARGV[1]))",
    "local s = cjson.encode(cjson.decode(ARGV[1])) "
    "assert(#cjson.encode(cjson.decode(s)) == #s or s:find('[{.]')) return s",
    "local c = cjson.new() c.decode_max_depth(100000) return {pcall(c.decode, ARGV[1])}",
    "return {pcall(string.format, ARGV[1], 1, 'a', 2.5)}",
    "return redis.pcall(unpack(cjson.decode(ARGV[1])))",
};

enum { N_SCRIPTS = sizeof scripts / sizeof *scripts };

static void run(struct engine *e, const struct rd_slice *argv, size_t argc, unsigned proto)
{
    struct engine_session s;
    struct engine_env env = {.now_us = (int64_t)START_S * 1000000};
    struct engine_reply reply = {.proto = proto};
    struct engine_effects fx = {0};
    engine_session_init(&s, e, ENGINE_CLIENT);
    ticks = 0;
    engine_apply(e, &s, argc, argv, &env, &reply, &fx);
    if (reply.buf.len == 0 || reply.buf.ptr[reply.buf.len - 1] != '\n') {
        fprintf(stderr, "fuzz_script: no reply\n");
        abort();
    }
    engine_session_done(&s);
    engine_effects_done(&fx);
    engine_reply_done(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    struct engine *e = engine_new(&(struct engine_opts){.seed = 1});
    unsigned mode = data[0] % (N_SCRIPTS + 2), proto = 2 + (data[0] >> 7);
    struct rd_slice rest = rd_slice(data + 1, size - 1);
    engine_set_hooks(e, &(struct engine_hooks){.script_tick = on_tick});
    if (mode < N_SCRIPTS) {
        const struct rd_slice argv[] = {text("EVAL"), text(scripts[mode]), text("0"), rest};
        run(e, argv, 4, proto);
    } else if (mode == N_SCRIPTS) {
        const struct rd_slice argv[] = {text("EVAL"), rest, text("1"), text("key"), text("arg")};
        run(e, argv, 5, proto);
    } else {
        const struct rd_slice load[] = {text("FUNCTION"), text("LOAD"), rest};
        const struct rd_slice call[] = {text("FCALL"), text("f"), text("0")};
        const struct rd_slice list[] = {text("FUNCTION"), text("LIST")};
        run(e, load, 3, proto);
        run(e, call, 3, proto);
        run(e, list, 2, proto);
    }
    engine_delete(e);
    return 0;
}
