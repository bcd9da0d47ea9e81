/* The rules in engine/admit.c, one by one and in their order. The texts were read from
 * redis-server 7.0.15. */
#include <criterion/criterion.h>

#include "engine/admit.h"

static struct engine *e;
static struct engine_session s;
static struct engine_refusal refusal;

static void init(void)
{
    e = engine_new(&(struct engine_opts){.seed = 1});
    engine_session_init(&s, e, ENGINE_CLIENT);
}

static void done(void)
{
    engine_session_done(&s);
    engine_delete(e);
}

TestSuite(admit, .init = init, .fini = done);

static size_t split(const char *line, struct rd_slice argv[32])
{
    size_t n = 0;
    for (line += strspn(line, " "); *line != '\0' && n < 32; line += strspn(line, " ")) {
        argv[n] = rd_slice(line, strcspn(line, " "));
        line += argv[n++].len;
    }
    return n;
}

static struct engine_request request_of(size_t argc, const struct rd_slice *argv,
                                        struct engine_reply *reply)
{
    return (struct engine_request){.session = &s,
                                   .command = engine_command_resolve(argv, argc),
                                   .argc = argc,
                                   .argv = argv,
                                   .reply = reply};
}

/* The answer in one letter, or the text of the refusal. */
static const char *ask(const struct engine_admit *admit, const char *line)
{
    static const char *const letters[] = {[ENGINE_ADMIT_RUN] = "run",
                                          [ENGINE_ADMIT_QUEUE] = "queue",
                                          [ENGINE_ADMIT_WAIT] = "wait",
                                          [ENGINE_ADMIT_GONE] = "gone"};
    struct rd_slice argv[32];
    size_t argc = split(line, argv);
    const struct engine_request request = request_of(argc, argv, NULL);
    enum engine_admit_answer answer = engine_admit(admit, &request, &refusal);
    return answer == ENGINE_ADMIT_REFUSE ? refusal.text : letters[answer];
}

static void expect(const struct engine_admit *admit, const char *line, const char *want)
{
    const char *got = ask(admit, line);
    cr_expect_str_eq(got, want, "%s: %s", line, got);
}

static void queue(const char *line)
{
    struct rd_slice argv[32];
    size_t argc = split(line, argv);
    s.in_multi = true;
    engine_session_queue(&s, engine_command_resolve(argv, argc), argc, argv);
}

#define EXEC_OOM "OOM command not allowed when used memory > 'maxmemory'."

Test(admit, unknown_commands_and_numbers_of_arguments)
{
    const struct engine_admit any = {0};
    expect(&any, "get k", "run");
    expect(&any, "nope", "ERR unknown command 'nope', with args beginning with: ");
    expect(&any, "nope a bc", "ERR unknown command 'nope', with args beginning with: 'a' 'bc' ");
    expect(&any, "config nope x", "ERR unknown subcommand 'nope'. Try CONFIG HELP.");
    expect(&any, "get", "ERR wrong number of arguments for 'get' command");
    expect(&any, "object freq", "ERR wrong number of arguments for 'object|freq' command");
    expect(&any, "config", "ERR wrong number of arguments for 'config' command");
    cr_expect_eq(refusal.why, ENGINE_REFUSED_ARITY);
}

Test(admit, long_arguments_of_an_unknown_command_are_cut_and_fit)
{
    const struct engine_admit any = {0};
    struct rd_slice argv[200];
    char letters[1000];
    memset(letters, 'x', sizeof letters);
    argv[0] = rd_slice(letters, sizeof letters);
    for (size_t len = 0; len < 200; len++) {
        for (size_t i = 1; i < 200; i++)
            argv[i] = rd_slice(letters, len);
        const struct engine_request request = {.session = &s, .argc = 200, .argv = argv};
        cr_assert_eq(engine_admit(&any, &request, &refusal), ENGINE_ADMIT_REFUSE);
        cr_assert_lt(strlen(refusal.text), sizeof refusal.line - 1);
    }
}

Test(admit, commands_of_later_versions_are_unknown_unless_they_are_allowed)
{
    struct engine_admit admit = {0};
    expect(&admit, "hgetdel h FIELDS 1 f",
           "ERR unknown command 'hgetdel', with args beginning with: 'h' 'FIELDS' '1' 'f' ");
    admit.later_versions = true;
    expect(&admit, "hgetdel h FIELDS 1 f", "run");
}

Test(admit, the_level_decides_which_commands_of_later_versions_clients_have)
{
    static const struct {
        enum engine_level level;
        bool hgetdel, trimslots, flushslot, arset;
    } levels[] = {
        {ENGINE_LEVEL_7_0, false, false, false, false},
        {ENGINE_LEVEL_REDIS_8_0, true, false, false, false},
        {ENGINE_LEVEL_REDIS_8_6, true, true, false, false},
        {ENGINE_LEVEL_VALKEY_9_1, true, false, true, false},
    };
    const struct engine_admit admit = {0};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        engine_config(e)->level = levels[i].level;
        cr_expect_eq(strcmp(ask(&admit, "hgetdel h FIELDS 1 f"), "run") == 0, levels[i].hgetdel);
        cr_expect_eq(strcmp(ask(&admit, "trimslots ranges 1 0 1"), "run") == 0,
                     levels[i].trimslots);
        cr_expect_eq(strcmp(ask(&admit, "cluster flushslot 1"), "run") == 0, levels[i].flushslot);
        cr_expect_eq(strcmp(ask(&admit, "arset a 1 x"), "run") == 0, levels[i].arset);
    }
}

static bool route(void *ctx, const struct engine_admit_script *script,
                  const struct engine_request *request, struct engine_refusal *ret)
{
    (void)request;
    unsigned *asked = ctx;
    ++*asked;
    ret->text = script != NULL ? "ERR not here" : "MOVED 1 there:6379";
    return false;
}

Test(admit, keys_of_other_nodes)
{
    static const struct engine_admit_hooks hooks = {.route = route};
    unsigned asked = 0;
    struct engine_admit admit = {.state = ENGINE_ADMIT_CLUSTER, .hooks = &hooks, .ctx = &asked};
    expect(&admit, "ping", "run");
    expect(&admit, "flushall", "run");
    cr_expect_eq(asked, 0);
    expect(&admit, "get k", "MOVED 1 there:6379");
    cr_expect_eq(refusal.why, ENGINE_REFUSED_ROUTE);
    expect(&admit, "eval x 0", "MOVED 1 there:6379");
    queue("get k");
    expect(&admit, "exec", "MOVED 1 there:6379");
    struct engine_reply reply = {.proto = 2};
    const struct rd_slice exec = rd_slice_str("exec");
    const struct engine_request request = request_of(1, &exec, &reply);
    engine_refuse(&request, &refusal);
    cr_expect_eq(memcmp(reply.buf.ptr, "-MOVED 1 there:6379\r\n", reply.buf.len), 0);
    cr_expect_not(s.in_multi);
    engine_reply_done(&reply);
    const struct engine_admit_script script = {.read_only = false};
    admit.who = ENGINE_ADMIT_SCRIPT;
    admit.script = &script;
    expect(&admit, "get k", "ERR not here");
    cr_expect_eq(asked, 4);
}

Test(admit, a_client_that_did_not_log_in)
{
    const struct engine_admit admit = {.state = ENGINE_ADMIT_UNAUTHENTICATED};
    expect(&admit, "get k", "NOAUTH Authentication required.");
    expect(&admit, "nope", "ERR unknown command 'nope', with args beginning with: ");
    expect(&admit, "get", "ERR wrong number of arguments for 'get' command");
    expect(&admit, "auth x", "run");
    expect(&admit, "quit", "run");
}

Test(admit, a_transaction_queues_all_but_its_own_commands)
{
    const struct engine_admit any = {0};
    queue("get k");
    expect(&any, "get k", "queue");
    expect(&any, "unwatch", "queue");
    const char *const at_once[] = {"exec", "discard", "multi", "watch k", "quit", "reset"};
    for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++)
        expect(&any, at_once[i], "run");
    expect(&any, "save", "ERR Command not allowed inside a transaction");
}

static enum engine_permit lacking;
static bool open_after = true, room, protected_ok;
static unsigned asked;

static enum engine_permit permit(void *ctx, const struct engine_request *request)
{
    (void)ctx, (void)request;
    asked++;
    return lacking;
}

static bool still_open(void *ctx)
{
    (void)ctx;
    return open_after;
}

static bool make_room(void *ctx)
{
    (void)ctx;
    asked++;
    return room;
}

static bool is_protected_ok(void *ctx, const struct engine_command *command)
{
    (void)ctx, (void)command;
    return protected_ok;
}

static const struct engine_admit_hooks hooks = {.permit = permit,
                                                .still_open = still_open,
                                                .make_room = make_room,
                                                .protected = is_protected_ok};

Test(admit, permissions)
{
    const struct engine_admit admit = {.state = ENGINE_ADMIT_RESTRICTED, .hooks = &hooks};
    lacking = ENGINE_PERMIT_OK;
    expect(&admit, "get k", "run");
    lacking = ENGINE_PERMIT_NO_COMMAND;
    expect(&admit, "config get x",
           "NOPERM this user has no permissions to run the 'config|get' command");
    lacking = ENGINE_PERMIT_NO_KEY;
    expect(&admit, "get k",
           "NOPERM this user has no permissions to access one of the keys used as arguments");
    lacking = ENGINE_PERMIT_NO_CHANNEL;
    expect(&admit, "publish c m",
           "NOPERM this user has no permissions to access one of the channels used as arguments");
    asked = 0;
    expect(&admit, "get", "ERR wrong number of arguments for 'get' command");
    cr_expect_eq(asked, 0, "permissions are asked after the arity");
}

static const char debug_refused[] =
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you "
    "can "
    "run it from a local connection, otherwise you need to set this option in the configuration "
    "file, and then restart the server.";

Test(admit, debug_and_modules_need_a_setting)
{
    struct engine_admit admit = {.hooks = &hooks, .state = ENGINE_ADMIT_UNAUTHENTICATED};
    protected_ok = false;
    expect(&admit, "debug sleep 0", debug_refused);
    expect(&admit, "module load x",
           "ERR MODULE command not allowed. If the enable-module-command option is set to "
           "\"local\", you can run it from a local connection, otherwise you need to set this "
           "option in the configuration file, and then restart the server.");
    admit.state = 0;
    expect(&admit, "module list", "run");
    protected_ok = true;
    expect(&admit, "debug sleep 0", "run");
}

Test(admit, memory_limits_what_takes_memory_and_what_is_queued)
{
    const struct engine_admit admit = {
        .state = ENGINE_ADMIT_MEMORY_LIMITED | ENGINE_ADMIT_CLIENTS_LIMITED, .hooks = &hooks};
    room = true;
    expect(&admit, "set k v", "run");
    room = false;
    expect(&admit, "set k v", EXEC_OOM);
    expect(&admit, "del k", "run");
    queue("del k");
    expect(&admit, "del k", EXEC_OOM);
    expect(&admit, "watch k", EXEC_OOM);
    expect(&admit, "multi", EXEC_OOM);
    expect(&admit, "exec", "run");
    queue("set k v");
    expect(&admit, "exec", EXEC_OOM);
    expect(&admit, "discard", "run");
    open_after = false;
    expect(&admit, "discard", "gone");
    open_after = true;
}

Test(admit, disk_errors_and_missing_replicas_stop_writes)
{
    struct engine_admit admit = {.state = ENGINE_ADMIT_DISK_ERROR | ENGINE_ADMIT_LACKS_REPLICAS |
                                          ENGINE_ADMIT_READONLY_REPLICA,
                                 .disk_error = "MISCONF why"};
    expect(&admit, "set k v", "MISCONF why");
    expect(&admit, "ping", "MISCONF why");
    expect(&admit, "get k", "run");
    queue("ping");
    expect(&admit, "exec", "run");
    queue("set k v");
    expect(&admit, "exec", "MISCONF why");
    engine_session_discard(&s);
    expect(&admit, "exec", "run");
    admit.state &= ~(uint32_t)ENGINE_ADMIT_DISK_ERROR;
    expect(&admit, "set k v", "NOREPLICAS Not enough good replicas to write.");
    expect(&admit, "ping", "run");
    admit.state &= ~(uint32_t)ENGINE_ADMIT_LACKS_REPLICAS;
    expect(&admit, "set k v", "READONLY You can't write against a read only replica.");
}

Test(admit, modes_of_the_server)
{
    struct engine_admit admit = {.state = ENGINE_ADMIT_SUBSCRIBED};
    expect(&admit, "get k",
           "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
           "are allowed in this context");
    const char *const allowed[] = {"subscribe c",  "unsubscribe",  "psubscribe c",
                                   "punsubscribe", "ssubscribe c", "sunsubscribe",
                                   "ping",         "quit",         "reset"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        expect(&admit, allowed[i], "run");
    admit.state = ENGINE_ADMIT_STALE;
    expect(&admit, "get k",
           "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
    expect(&admit, "info", "run");
    admit.state = ENGINE_ADMIT_LOADING;
    expect(&admit, "get k", "LOADING Redis is loading the dataset in memory");
    expect(&admit, "multi", "run");
    queue("multi");
    expect(&admit, "exec", "run");
    queue("get k");
    expect(&admit, "exec", "LOADING Redis is loading the dataset in memory");
    engine_session_discard(&s);
    admit.state = ENGINE_ADMIT_ASYNC_LOADING;
    expect(&admit, "get k", "run");
    expect(&admit, "flushall", "run");
    expect(&admit, "save", "LOADING Redis is loading the dataset in memory");
    admit.state = ENGINE_ADMIT_BUSY_SCRIPT;
    expect(&admit, "get k",
           "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
           "NOSAVE.");
    expect(&admit, "script kill", "run");
    admit.state = ENGINE_ADMIT_BUSY_FUNCTION;
    expect(&admit, "get k",
           "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN "
           "NOSAVE.");
}

Test(admit, pauses_hold_commands_and_replicas_have_no_keys)
{
    struct engine_admit admit = {.state = ENGINE_ADMIT_PAUSED_WRITES};
    expect(&admit, "get k", "run");
    expect(&admit, "set k v", "wait");
    expect(&admit, "publish c m", "wait");
    queue("get k");
    expect(&admit, "exec", "run");
    expect(&admit, "set k v", "wait");
    queue("set k v");
    expect(&admit, "exec", "wait");
    admit.state = ENGINE_ADMIT_PAUSED;
    expect(&admit, "get k", "wait");
    engine_session_discard(&s);
    admit.who = ENGINE_ADMIT_REPLICA;
    expect(&admit, "ping", "run");
    expect(&admit, "get k", "ERR Replica can't interact with the keyspace");
    admit.state = 0;
    expect(&admit, "set k v", "ERR Replica can't interact with the keyspace");
}

Test(admit, a_log_was_accepted_before)
{
    struct engine_admit admit = {.who = ENGINE_ADMIT_LOG};
    expect(&admit, "set k v", "run");
    expect(&admit, "debug sleep 0", "run");
    admit.hooks = &hooks;
    protected_ok = false;
    expect(&admit, "debug sleep 0", debug_refused);
    admit.hooks = NULL;
    expect(&admit, "nope", "ERR unknown command 'nope', with args beginning with: ");
    queue("set k v");
    expect(&admit, "set k v", "queue");
}

Test(admit, scripts_have_rules_of_their_own)
{
    struct engine_admit_script script = {0};
    struct engine_admit admit = {.who = ENGINE_ADMIT_SCRIPT, .script = &script, .hooks = &hooks};
    expect(&admit, "get k", "run");
    expect(&admit, "nope", "ERR Unknown Redis command called from script");
    expect(&admit, "config nope", "ERR Unknown Redis command called from script");
    expect(&admit, "get", "ERR Wrong number of args calling Redis command from script");
    expect(&admit, "multi", "ERR This Redis command is not allowed from script");
    script.read_only = true;
    expect(&admit, "set k v", "ERR Write commands are not allowed from read-only scripts.");
    expect(&admit, "publish c m", "ERR Write commands are not allowed from read-only scripts.");
    script.read_only = false;
    admit.state = ENGINE_ADMIT_STALE;
    expect(&admit, "get k", "ERR Can not execute the command on a stale replica");
    admit.state = ENGINE_ADMIT_RESTRICTED;
    lacking = ENGINE_PERMIT_NO_COMMAND;
    expect(&admit, "get k",
           "ERR The user executing the script can't run this command or subcommand");
    lacking = ENGINE_PERMIT_NO_KEY;
    expect(&admit, "get k",
           "ERR The user executing the script can't access at least one of the keys mentioned in "
           "the command arguments");
    lacking = ENGINE_PERMIT_NO_CHANNEL;
    expect(&admit, "publish c m",
           "ERR The user executing the script can't publish to the channel mentioned in the "
           "command");
}

Test(admit, a_script_that_wrote_is_not_stopped_halfway)
{
    struct engine_admit_script script = {.out_of_memory = true};
    struct engine_admit admit = {.who = ENGINE_ADMIT_SCRIPT,
                                 .script = &script,
                                 .state = ENGINE_ADMIT_READONLY_REPLICA | ENGINE_ADMIT_DISK_ERROR |
                                          ENGINE_ADMIT_LACKS_REPLICAS,
                                 .disk_error = "MISCONF why"};
    expect(&admit, "set k v", "READONLY You can't write against a read only replica.");
    expect(&admit, "get k", "run");
    script.wrote = true;
    expect(&admit, "set k v", "run");
    script.wrote = false;
    script.obeyed = true;
    expect(&admit, "set k v", "NOREPLICAS Not enough good replicas to write.");
    script.obeyed = false;
    admit.state = ENGINE_ADMIT_DISK_ERROR;
    expect(&admit, "set k v", "MISCONF why");
    admit.state = 0;
    expect(&admit, "set k v", EXEC_OOM);
    expect(&admit, "del k", "run");
    script.allow_oom = true;
    expect(&admit, "set k v", "run");
}

static void check_refuse(const char *line, const char *want)
{
    const struct engine_admit any = {0};
    struct engine_reply reply = {.proto = 2};
    struct rd_slice argv[32];
    size_t argc = split(line, argv);
    const struct engine_request request = request_of(argc, argv, &reply);
    cr_assert_eq(engine_admit(&any, &request, &refusal), ENGINE_ADMIT_REFUSE);
    engine_refuse(&request, &refusal);
    cr_expect_str_eq(reply.text, want, "%s: %s", line, reply.text);
    engine_reply_done(&reply);
}

Test(admit, a_refused_command_makes_its_transaction_fail)
{
    check_refuse("get", "ERR wrong number of arguments for 'get' command");
    cr_expect_not(s.dirty_exec);
    queue("get k");
    check_refuse("get", "ERR wrong number of arguments for 'get' command");
    cr_expect(s.dirty_exec && s.in_multi);
    check_refuse("exec x", "EXECABORT Transaction discarded because of: wrong number of arguments "
                           "for 'exec' command");
    cr_expect_not(s.in_multi);
}
