/* Commands that are added at run time: one with a function, and a container of the server's. */
#include "tests/engine/ask.h"

#include "engine/call.h"
#include "engine/command_row.h"

static void run_near(struct engine_call *call)
{
    engine_reply_bulk(call->reply, call->argv[1]);
}

static const struct engine_command near_row = {
    ENGINE_ROW(run_near, "near", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "1.0.0",
               "Returns its key", "O(1)", KEY(1, RO | ACCESS) ARGS("key@0"))};

static const struct engine_command box_rows[] = {
    {ENGINE_ROW(NULL, "graph", MODULE, SERVER, -2, 0, 0, "1.0.0", "Graphs", "O(1)", SYSCMD)},
    {ENGINE_ROW(NULL, "graph|get", MODULE, SERVER, 3, WRITE, 0, "1.0.0", "One", "O(1)",
                KEY(2, RO | ACCESS))},
    {ENGINE_ROW(NULL, "graph|list", MODULE, SERVER, 2, READONLY, 0, "1.0.0", "All", "O(1)",
                SYSCMD)}};

static const struct engine_command *find(const char *path)
{
    return engine_command_find_path(rd_slice_str(path));
}

static bool is_listed(const struct engine_command *wanted)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        if (c == wanted)
            return true;
    return false;
}

Test(command_add, an_added_command_runs_and_is_gone_when_it_was_removed)
{
    struct ask ask;
    struct rd_err err = {0};
    ask_init(&ask, ENGINE_CLIENT);
    cr_expect_eq(strncmp(ask_line(&ask, "NEAR key"), "-ERR unknown command", 20), 0);
    const struct engine_command *near = engine_command_add(&near_row, 1, &err);
    cr_assert_not_null(near, "%s", err.text);
    cr_expect_eq(find("NeAr"), near);
    cr_expect(is_listed(near));
    cr_expect_lt(near->id, ENGINE_COMMAND_IDS);
    cr_expect_eq(near->acl & (uint32_t)(A_KEYSPACE | A_READ | A_FAST),
                 (uint32_t)(A_KEYSPACE | A_READ | A_FAST));
    cr_expect_str_eq(ask_line(&ask, "NEAR key"), "$3\r\nkey\r\n");
    cr_expect_str_eq(ask_line(&ask, "NEAR"),
                     "-ERR wrong number of arguments for 'near' command\r\n");
    cr_expect_str_eq(ask_line(&ask, "COMMAND GETKEYS NEAR key"), "*1\r\n$3\r\nkey\r\n");
    ask_line(&ask, "MULTI");
    ask_line(&ask, "NEAR key");

    engine_command_remove(near);
    cr_expect_null(find("near"));
    cr_expect_not(is_listed(near));
    cr_expect_str_eq(ask_line(&ask, "EXEC"), "*1\r\n-ERR unknown command 'near'\r\n");
    cr_expect_eq(strncmp(ask_line(&ask, "NEAR key"), "-ERR unknown command", 20), 0);
    cr_expect_str_eq(ask_line(&ask, "PING"), "+PONG\r\n");
    ask_done(&ask);
}

Test(command_add, subcommands_belong_to_their_container)
{
    struct rd_err err = {0};
    const struct engine_command *graph = engine_command_add(box_rows, 3, &err);
    cr_assert_not_null(graph, "%s", err.text);
    cr_expect_eq(graph->n_subcommands, 2);
    const struct engine_command *get = find("graph|get"), *list = find("GRAPH|LIST");
    cr_expect_eq(get, &graph->subcommands[0]);
    cr_expect_eq(list, &graph->subcommands[1]);
    cr_expect_eq(get->container, graph);
    cr_expect_str_eq(get->name + get->own_name_at, "get");
    cr_expect_null(find("get|graph"));
    cr_expect_neq(find("get"), get);
    cr_expect_not(graph->id == get->id || get->id == list->id);
    engine_command_remove(graph);
    cr_expect_null(find("graph"));
    cr_expect_null(find("graph|get"));
}

Test(command_add, who_adds_it_again_gets_the_same_command_and_removes_it_as_often)
{
    struct rd_err err = {0};
    const struct engine_command *first = engine_command_add(box_rows, 3, &err);
    uint16_t id = first->id;
    cr_expect_eq(engine_command_add(box_rows, 3, &err), first);
    engine_command_remove(first);
    cr_expect_eq(find("graph|get"), &first->subcommands[0]);
    engine_command_remove(first);
    cr_expect_null(find("graph|get"));
    cr_expect_eq(engine_command_add(box_rows, 3, &err), first);
    cr_expect_eq(first->id, id);
    cr_expect_eq(find("graph|get")->n_key_specs, 1);
    engine_command_remove(first);

    /* another family of this name has entries of its own */
    const struct engine_command *other = engine_command_add(box_rows, 2, &err);
    cr_expect_neq(other, first);
    cr_expect_eq(find("graph"), other);
    cr_expect_null(find("graph|list"));
    engine_command_remove(other);
}

Test(command_add, names_that_are_taken_or_are_none_are_refused)
{
    static const char *const wrong[] = {"",       "Near", "ne ar",
                                        "near|x", "\x80", "abcdefghijklmnopqrstuvwxy"};
    struct engine_command row = near_row;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rd_err err = {0};
        row.name = wrong[i];
        cr_expect_null(engine_command_add(&row, 1, &err), "%s", wrong[i]);
        cr_expect_eq(err.code, RD_ERR_USAGE);
    }
    struct rd_err err = {0};
    row.name = "get";
    cr_expect_null(engine_command_add(&row, 1, &err));
    cr_expect_str_eq(err.text, "the command 'get' exists");

    struct engine_command rows[] = {box_rows[0], box_rows[1], box_rows[1]};
    err = (struct rd_err){0};
    cr_expect_null(engine_command_add(rows, 3, &err)); /* twice the same subcommand */
    rows[2].name = "other|get";
    err = (struct rd_err){0};
    cr_expect_null(engine_command_add(rows, 3, &err));
    cr_expect_null(find("graph"));
}

Test(command_add, there_is_a_limit_and_what_was_added_stays)
{
    struct engine_command row = near_row;
    struct rd_err err = {0};
    char name[24];
    size_t n = 0;
    row.name = name;
    do
        snprintf(name, sizeof name, "x%zu", n++);
    while (engine_command_add(&row, 1, &err) != NULL);
    cr_expect_eq(err.code, RD_ERR_LIMIT);
    cr_expect_gt(n, 256);
    for (size_t i = 0; i + 1 < n; i++) {
        snprintf(name, sizeof name, "X%zu", i);
        cr_assert_not_null(find(name), "%s", name);
    }
    cr_expect_not_null(find("get"));
    snprintf(name, sizeof name, "x%zu", n - 1);
    cr_expect_null(find(name));
}
