/* What scripts can reach, and that all of it can be stopped. */
#include "ask.h"
#include "engine/script.h"

enum { SECONDS = 120 };

/* ---- names ---- */

/* Every name that a script can reach, and its type. A new one needs a look: which of its arguments
 * make it recurse, allocate or run without end? */
static const char expected[] =
    "ARGV:table KEYS:table _G:table _VERSION:string __redis__err__handler:function "
    "assert:function bit.arshift:function bit.band:function bit.bnot:function "
    "bit.bor:function bit.bswap:function bit.bxor:function bit.lshift:function "
    "bit.rol:function bit.ror:function bit.rshift:function bit.tobit:function "
    "bit.tohex:function bit:table cjson._NAME:string cjson._VERSION:string "
    "cjson.decode:function cjson.decode_invalid_numbers:function "
    "cjson.decode_max_depth:function cjson.encode:function "
    "cjson.encode_invalid_numbers:function cjson.encode_keep_buffer:function "
    "cjson.encode_max_depth:function cjson.encode_number_precision:function "
    "cjson.encode_sparse_array:function cjson.new:function cjson.null:userdata cjson:table "
    "cmsgpack._COPYRIGHT:string cmsgpack._DESCRIPTION:string cmsgpack._NAME:string "
    "cmsgpack._VERSION:string cmsgpack.pack:function cmsgpack.unpack:function "
    "cmsgpack.unpack_limit:function cmsgpack.unpack_one:function cmsgpack:table "
    "collectgarbage:function coroutine.create:function coroutine.resume:function "
    "coroutine.running:function coroutine.status:function coroutine.wrap:function "
    "coroutine.yield:function coroutine:table error:function gcinfo:function "
    "getmetatable:function ipairs:function load:function loadstring:function "
    "math.abs:function math.acos:function math.asin:function math.atan2:function "
    "math.atan:function math.ceil:function math.cos:function math.cosh:function "
    "math.deg:function math.exp:function math.floor:function math.fmod:function "
    "math.frexp:function math.huge:number math.ldexp:function math.log10:function "
    "math.log:function math.max:function math.min:function math.mod:function "
    "math.modf:function math.pi:number math.pow:function math.rad:function "
    "math.random:function math.randomseed:function math.sin:function math.sinh:function "
    "math.sqrt:function math.tan:function math.tanh:function math:table next:function "
    "pairs:function pcall:function rawequal:function rawget:function rawset:function "
    "redis.LOG_DEBUG:number redis.LOG_NOTICE:number redis.LOG_VERBOSE:number "
    "redis.LOG_WARNING:number redis.REDIS_VERSION:string redis.REDIS_VERSION_NUM:number "
    "redis.REPL_ALL:number redis.REPL_AOF:number redis.REPL_NONE:number "
    "redis.REPL_REPLICA:number redis.REPL_SLAVE:number redis.acl_check_cmd:function "
    "redis.breakpoint:function redis.call:function redis.debug:function "
    "redis.error_reply:function redis.log:function redis.pcall:function "
    "redis.replicate_commands:function redis.set_repl:function redis.setresp:function "
    "redis.sha1hex:function redis.status_reply:function redis:table select:function "
    "setmetatable:function string.byte:function string.char:function string.dump:function "
    "string.find:function string.format:function string.gfind:function "
    "string.gmatch:function string.gsub:function string.len:function string.lower:function "
    "string.match:function string.rep:function string.reverse:function string.sub:function "
    "string.upper:function string:table struct.pack:function struct.size:function "
    "struct.unpack:function struct:table table.concat:function table.foreach:function "
    "table.foreachi:function table.getn:function table.insert:function table.maxn:function "
    "table.remove:function table.setn:function table.sort:function table:table "
    "tonumber:function tostring:function type:function unpack:function xpcall:function ";

static const char walk[] = "local seen, names = {}, {} "
                           "local function walk(t, at) "
                           "  if seen[t] then return end "
                           "  seen[t] = true "
                           "  for k, v in pairs(t) do "
                           "    names[#names + 1] = at .. tostring(k) .. ':' .. type(v) .. ' ' "
                           "    if type(v) == 'table' then walk(v, at .. tostring(k) .. '.') end "
                           "  end "
                           "end "
                           "walk(_G, '') "
                           "assert(getmetatable('').__index == string) "
                           "table.sort(names) ";

static const char *run(struct ask *ask, const char *script)
{
    const struct rd_slice argv[] = {rd_slice_str("EVAL"), rd_slice_str(script), rd_slice_str("0")};
    return ask_argv(ask, 3, argv);
}

/* As a function of a library; `script` is its body. */
static const char *call(struct ask *ask, const char *script)
{
    static char code[16384];
    int len = snprintf(code, sizeof code,
                       "#!lua name=l\nredis.register_function('f', function() %s end)", script);
    cr_assert(len > 0 && (size_t)len < sizeof code);
    const struct rd_slice load[] = {rd_slice_str("FUNCTION"), rd_slice_str("LOAD"),
                                    rd_slice_str("REPLACE"), rd_slice_str(code)};
    const struct rd_slice argv[] = {rd_slice_str("FCALL"), rd_slice_str("f"), rd_slice_str("0")};
    const char *reply = ask_argv(ask, 4, load);
    return *reply == '$' ? ask_argv(ask, 3, argv) : reply;
}

static void look(const char *(*how)(struct ask *, const char *), const char *want)
{
    static char script[8192], header[32];
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    snprintf(script, sizeof script, "%s return table.concat(names)", walk);
    snprintf(header, sizeof header, "$%zu\r\n", strlen(want));
    const char *reply = how(&ask, script);
    cr_assert(strncmp(reply, header, strlen(header)) == 0 && strstr(reply, want) != NULL, "%s",
              reply);
    ask_done(&ask);
}

/* Without what only EVAL has. */
static void names_of_functions(char *dst)
{
    static const char *const only_eval[] = {
        "ARGV:table ",
        "KEYS:table ",
        "__redis__err__handler:function ",
        "redis.breakpoint:function ",
        "redis.debug:function ",
        "redis.replicate_commands:function ",
    };
    strcpy(dst, expected);
    for (size_t i = 0; i < sizeof only_eval / sizeof *only_eval; i++) {
        char *at = strstr(dst, only_eval[i]);
        size_t len = strlen(only_eval[i]);
        cr_assert_not_null(at);
        memmove(at, at + len, strlen(at + len) + 1);
    }
}

Test(script, every_name_that_a_script_reaches_is_known)
{
    static char fewer[sizeof expected];
    names_of_functions(fewer);
    look(run, expected);
    look(call, fewer);
}

/* ---- hostile arguments for all of them ---- */

/* Each function with each of these values in each of the first three places. Only whether it comes
 * back counts. string.rep may take all memory. */
static const char hostile[] =
    "local self = {} self.self = self "
    "local deep = {} for i = 1, 5000 do deep = {deep} end "
    "local values = {('a?'):rep(250000), ('a'):rep(250000), ('(*'):rep(250000), ('[')"
    ":rep(100000), ('%b()'):rep(50000), ('%%99d'):rep(100000), 'c999999999', 1e308, -1, 2^31, "
    "-2^31, 0/0, self, deep, setmetatable({}, {__index = error, __tostring = error}), "
    "function(...) return ... end, coroutine.create(function() end), cjson.null, false} "
    "local skip = {[string.rep] = true} "
    "local n = 0 "
    "local function try(f) "
    "  if skip[f] then return end "
    "  local texts = {values[1], values[2]} "
    "  for i, v in ipairs(values) do "
    "    n = n + 1 "
    "    pcall(f, v) "
    "    for _, text in ipairs(texts) do pcall(f, text, v) pcall(f, v, text) end "
    "    pcall(f, texts[2], texts[1], v) "
    "    local ok, iterator = pcall(f, texts[2], v) "
    "    if ok and type(iterator) == 'function' then pcall(iterator) end "
    "  end "
    "end "
    "local seen = {} "
    "local function each(t) "
    "  if seen[t] then return end seen[t] = true "
    "  for _, v in pairs(t) do "
    "    if type(v) == 'table' then each(v) elseif type(v) == 'function' then try(v) end "
    "  end "
    "end "
    "each(_G) "
    "collectgarbage('restart') collectgarbage('setpause', 200) "
    "return n > 2000";

Test(script, no_function_dies_of_its_arguments, .timeout = SECONDS)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    cr_assert_str_eq(run(&ask, hostile), ":1\r\n");
    cr_assert_str_eq(run(&ask, "return 7"), ":7\r\n");
    ask_done(&ask);
}

/* ---- scripts that do not want to end ---- */

static bool end_now(void *ctx, const struct engine_running *running)
{
    unsigned *ticks = ctx;
    (void)running;
    return ++*ticks > 2;
}

#define LOOP  "while true do end"
#define LOOPS "function() " LOOP " end"

static const char *const stubborn[] = {
    LOOP,
    "while true do pcall(" LOOPS ") end",
    "xpcall(" LOOPS ", " LOOPS ")",
    "xpcall(error, " LOOPS ")",
    "while true do xpcall(" LOOPS ", " LOOPS ") end",
    "local function f() xpcall(" LOOPS ", f) end while true do f() end",
    "while true do xpcall(function() xpcall(" LOOPS ", error) end, " LOOPS ") end",
    "while true do coroutine.resume(coroutine.create(" LOOPS ")) end",
    "while true do pcall(coroutine.wrap(" LOOPS ")) end",
    "local function f(n) while true do if n > 0 then local c = coroutine.create(f) "
    "coroutine.resume(c, n - 1) end end end f(5)",
    "local function f(n) return function() while true do if n > 0 then "
    "pcall(coroutine.wrap(f(n - 1))) end end end end f(5)()",
    "local co = coroutine.create(function() while true do xpcall(" LOOPS ", " LOOPS ") end end) "
    "while true do coroutine.resume(co) end",
    "error(setmetatable({}, {__index = " LOOPS "}))",
    "error(setmetatable({err = 'x'}, {__index = " LOOPS "}))",
    "error(setmetatable({}, {__newindex = " LOOPS "}))",
    "error(setmetatable({}, {__tostring = " LOOPS "}))",
    "return setmetatable({}, {__index = " LOOPS "})",
    "return setmetatable({err = 'x'}, {__index = " LOOPS "})",
    "return {setmetatable({map = {}}, {__index = " LOOPS ", __len = " LOOPS "})}",
    "return pcall(error, setmetatable({}, {__index = " LOOPS "}))",
    "table.sort({1, 2, 3}, " LOOPS ")",
    "('x'):gsub('x', " LOOPS ")",
    "('x'):gsub('x', setmetatable({}, {__index = " LOOPS "}))",
    "table.foreach({1}, " LOOPS ")",
    "load(" LOOPS ")",
    "loadstring('" LOOP "')()",
    "return cjson.encode(setmetatable({}, {__index = " LOOPS "}))",
    "return redis.call(setmetatable({}, {__tostring = " LOOPS "}))",
    "return redis.pcall('get', setmetatable({}, {__index = " LOOPS "}))",
    "tostring(setmetatable({}, {__tostring = " LOOPS "}))",
    /* One call that takes long. */
    "string.find(('a'):rep(2000), ('a?'):rep(30) .. 'b')",
    "string.match(('a'):rep(2000), ('a*'):rep(20) .. 'b')",
    "string.gsub(('a'):rep(2000), ('a-'):rep(20) .. 'b', '')",
    "string.gmatch(('a'):rep(2000), ('.-'):rep(20) .. 'b')()",
    "string.gfind(('a'):rep(2000), ('(a-)'):rep(20) .. 'b')()",
    "string.find(('('):rep(2000000), '%b()')",
    "string.find(('a'):rep(4000000), ('a'):rep(2000000) .. 'b', 1, true)",
    "while true do string.rep('', 2^31 - 1) end",
    "table.insert({}, 1 - 2^31, 1)",
    "local t, s = {}, ('x'):rep(1000000) for i = 1, 100000 do t[i] = s .. i % 10 end table.sort(t)",
    "local t, n = {}, 50000 for i = 1, n do t[i] = i % 7 end "
    "while true do table.sort(t, rawequal) end",
    "load(collectgarbage)",
    "load(gcinfo)",
    "local t = {} for i = 1, 60 do t = {t, t} end cjson.encode(t)",
    "local t = {} for i = 1, 15 do t = {t, t, t, t, t} end cmsgpack.pack(t)",
    /* Few steps between long calls. */
    "local s = ('x'):rep(20000000) while true do local a = s .. 'a' end",
    "while true do ('x'):rep(20000000) end",
    "local s = ('x'):rep(20000000) while true do s:upper() end",
    "local s = ('x'):rep(20000000) while true do redis.sha1hex(s) end",
    "local s = ('b'):rep(20000000) while true do struct.size(s) end",
    "local s = ('x'):rep(20000000) while true do redis.call('echo', s) end",
    "local t = {} for i = 1, 1000000 do t[i] = {} end while true do collectgarbage() end",
    "redis.call('setrange', 'k', 10000000, 'x') while true do redis.call('bitcount', 'k') end",
    "local co = coroutine.wrap(function() while true do ('x'):rep(20000000) end end) co()",
    "local co = coroutine.create(function() while true do pcall(string.rep, 'x', 20000000) end "
    "end) "
    "coroutine.resume(co)",
};

Test(script, each_script_can_be_stopped, .timeout = SECONDS)
{
    struct ask ask;
    unsigned ticks;
    ask_init(&ask, ENGINE_CLIENT);
    engine_set_hooks(ask.engine, &(struct engine_hooks){.script_tick = end_now, .ctx = &ticks});
    for (size_t i = 0; i < sizeof stubborn / sizeof *stubborn; i++)
        for (int as_function = 0; as_function < 2; as_function++) {
            ticks = 0;
            (as_function ? call : run)(&ask, stubborn[i]);
            ticks = 0;
            cr_assert_str_eq(run(&ask, "return 7"), ":7\r\n", "%s", stubborn[i]);
        }
    ask_done(&ask);
}

Test(script, a_library_that_does_not_end_its_loading_is_stopped, .timeout = SECONDS)
{
    static const char *const codes[] = {
        "#!lua name=l\n" LOOP,
        "#!lua name=l\nlocal t = {} " LOOP,
    };
    struct ask ask;
    unsigned ticks;
    ask_init(&ask, ENGINE_CLIENT);
    engine_set_hooks(ask.engine, &(struct engine_hooks){.script_tick = end_now, .ctx = &ticks});
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const struct rd_slice argv[] = {rd_slice_str("FUNCTION"), rd_slice_str("LOAD"),
                                        rd_slice_str(codes[i])};
        ticks = 0;
        cr_assert_not_null(strstr(ask_argv(&ask, 3, argv), "FUNCTION LOAD timeout"));
    }
    ask_done(&ask);
}

Test(script, xpcall_gives_results_and_what_its_handler_makes_of_an_error)
{
    static const struct {
        const char *script, *reply;
    } cases[] = {
        {"return {xpcall(function() return 1, 2 end, error)}", "*3\r\n:1\r\n:1\r\n:2\r\n"},
        {"return {select('#', xpcall(function() return end, error))}", "*1\r\n:1\r\n"},
        {"local ok, e = xpcall(function() error('x', 0) end, function(e) return e .. 'y' end) "
         "return {tostring(ok), e}",
         "*2\r\n$5\r\nfalse\r\n$2\r\nxy\r\n"},
        {"local ok, e = xpcall(function(...) return select('#', ...) end, error, 1, 2) return e",
         ":0\r\n"},
        {"return tostring((xpcall(error, error)))", "$5\r\nfalse\r\n"},
        {"local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b * 2 "
         "end) "
         "local _, x = coroutine.resume(co, 1) local _, y = coroutine.resume(co, 5) "
         "local ok = coroutine.resume(co) return {x, y, tostring(ok)}",
         "*3\r\n:2\r\n:10\r\n$5\r\nfalse\r\n"},
    };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_str_eq(run(&ask, cases[i].script), cases[i].reply);
    ask_done(&ask);
}

/* ---- the cache of EVAL ---- */

static uint64_t n_scripts(struct ask *ask, uint64_t *ret_bytes)
{
    struct engine_script_stats stats;
    engine_script_stats(ask->engine, &stats);
    *ret_bytes = stats.scripts_bytes;
    return stats.n_scripts;
}

static bool exists(struct ask *ask, const char *script)
{
    const struct rd_slice argv[] = {rd_slice_str("EVAL"),
                                    rd_slice_str("return redis.sha1hex(ARGV[1])"),
                                    rd_slice_str("0"), rd_slice_str(script)};
    char line[128];
    snprintf(line, sizeof line, "SCRIPT EXISTS %.40s", ask_argv(ask, 4, argv) + 5);
    return strcmp(ask_line(ask, line), "*1\r\n:1\r\n") == 0;
}

Test(script, scripts_of_eval_are_limited_and_those_of_script_load_stay)
{
    enum { MANY = 3000, LIMIT = 500 };
    struct ask ask;
    char script[64];
    uint64_t bytes;
    ask_init(&ask, ENGINE_CLIENT);
    const struct rd_slice load[] = {rd_slice_str("SCRIPT"), rd_slice_str("LOAD"),
                                    rd_slice_str("return 'kept'")};
    ask_argv(&ask, 3, load);
    run(&ask, "return 'later kept'");
    const struct rd_slice later[] = {load[0], load[1], rd_slice_str("return 'later kept'")};
    ask_argv(&ask, 3, later);
    uint64_t memory = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(script, sizeof script, "return %d", i);
        run(&ask, script);
        run(&ask, "return 'used'");
        cr_assert(n_scripts(&ask, &bytes) <= LIMIT + 2);
        if (i == MANY / 2)
            memory = engine_script_memory(ask.engine);
    }
    cr_assert_eq(n_scripts(&ask, &bytes), LIMIT + 2);
    cr_assert(bytes < (LIMIT + 2) * 250 && engine_script_memory(ask.engine) < 2 * memory);
    cr_assert(exists(&ask, "return 'kept'") && exists(&ask, "return 'later kept'"));
    cr_assert(exists(&ask, "return 'used'") && exists(&ask, "return 2999"));
    cr_assert(!exists(&ask, "return 1000"));
    cr_assert_str_eq(run(&ask, "return 1000"), ":1000\r\n");
    ask_line(&ask, "SCRIPT FLUSH");
    cr_assert_eq(n_scripts(&ask, &bytes), 0);
    cr_assert_str_eq(run(&ask, "return 1000"), ":1000\r\n");
    ask_done(&ask);
}

Test(script, long_scripts_of_eval_are_limited_by_their_bytes)
{
    enum { LEN = 1 << 20, MANY = 100, LIMIT = 33 << 20 };
    struct ask ask;
    char *script = malloc(LEN + 1);
    uint64_t bytes;
    ask_init(&ask, ENGINE_CLIENT);
    memset(script, ' ', LEN);
    script[LEN] = '\0';
    for (int i = 0; i < MANY; i++) {
        int len = sprintf(script, "return %d", i);
        script[len] = ' ';
        run(&ask, script);
        n_scripts(&ask, &bytes);
        cr_assert(bytes <= LIMIT);
    }
    free(script);
    ask_done(&ask);
}

Test(script, the_scripts_of_a_log_stay)
{
    enum { MANY = 1000 };
    struct ask ask;
    char script[64];
    uint64_t bytes;
    ask_init(&ask, ENGINE_LOADING);
    for (int i = 0; i < MANY; i++) {
        snprintf(script, sizeof script, "return %d", i);
        run(&ask, script);
    }
    cr_assert_eq(n_scripts(&ask, &bytes), MANY);
    ask_done(&ask);
}

Test(script, much_garbage_goes_when_the_script_ends)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    run(&ask, "collectgarbage('stop') local s = ('x'):rep(1000000) "
              "for i = 1, 100 do local t = s .. i end");
    cr_assert(engine_script_memory(ask.engine) < 2000000);
    ask_done(&ask);
}

/* ---- time ---- */

static int64_t next_second(void *ctx)
{
    int64_t *now_us = ctx;
    return *now_us += 1000000;
}

Test(script, time_moves_on_and_expiry_stands_still)
{
    static const struct {
        const char *script, *reply;
    } cases[] = {
        {"local a, b = redis.call('time'), redis.call('time') return b[1] - a[1]", ":1\r\n"},
        {"redis.call('set', 'k', 'v', 'px', 10) redis.call('time') "
         "return {redis.call('exists', 'k'), redis.call('pttl', 'k')}",
         "*2\r\n:1\r\n:0\r\n"},
        {"redis.call('hset', 'h', 'f', 'v') redis.call('hpexpire', 'h', 10, 'fields', 1, 'f') "
         "return {redis.call('hget', 'h', 'f'), redis.call('hpttl', 'h', 'fields', 1, 'f')[1]}",
         "*2\r\n$1\r\nv\r\n:0\r\n"},
        {"return {redis.call('exists', 'old'), redis.call('exists', 'old')}", "*2\r\n:1\r\n:1\r\n"},
    };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    int64_t now_us = ask.env.now_us;
    engine_set_hooks(ask.engine, &(struct engine_hooks){.clock = next_second, .ctx = &now_us});
    ask_line(&ask, "SET old v PX 1500");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_str_eq(run(&ask, cases[i].script), cases[i].reply, "%s", cases[i].script);
    ask_line(&ask, "MULTI");
    ask_line(&ask, "TIME");
    ask_line(&ask, "EXISTS old");
    ask_line(&ask, "TIME");
    const char *reply = ask_line(&ask, "EXEC");
    cr_assert_not_null(strstr(reply, ":1\r\n"));
    cr_assert_neq(memcmp(strstr(reply, "$10"), strstr(strstr(reply, ":1\r\n"), "$10"), 15), 0);
    ask.env.now_us = now_us + 2000000;
    cr_assert_str_eq(ask_line(&ask, "EXISTS old k"), ":0\r\n");
    ask_done(&ask);
}
