/* cluster.c - `redoubt cluster`: the action and its options. */
#include "tools/cluster/cluster.h"

#include "base/mem.h"
#include "base/num.h"
#include "tools/tools.h"

/* HOST:PORT, with @BUSPORT if the bus of the cluster has an unusual port. */
static bool parse_place(struct rd_slice text, struct cluster_address *address)
{
    const uint8_t *at = memchr(text.ptr, '@', text.len);
    struct rd_slice place = rd_slice(text.ptr, at != NULL ? (size_t)(at - text.ptr) : text.len);
    size_t colon = place.len;
    uint64_t port, bus = 0;
    while (colon > 0 && place.ptr[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon - 1 > CLUSTER_HOST_MAX ||
        !rd_num_get_u64(rd_slice(place.ptr + colon, place.len - colon), &port) || port == 0 ||
        port > 65535)
        return false;
    if (at != NULL && (!rd_num_get_u64(rd_slice(at + 1, text.len - place.len - 1), &bus) ||
                       bus == 0 || bus > 65535))
        return false;
    for (size_t i = 0; i < colon - 1; i++) {
        if (place.ptr[i] <= ' ' || place.ptr[i] >= 0x7f || place.ptr[i] == ',')
            return false;
    }
    memcpy(address->host, place.ptr, colon - 1);
    address->port = (unsigned)port;
    address->bus_port = (unsigned)bus;
    return true;
}

/* --address ID=HOST:PORT[@BUSPORT] */
static bool add_address(void *ctx, const char *value, struct rd_err *err)
{
    struct cluster_tool_opts *opts = ctx;
    const char *equals = strchr(value, '=');
    struct cluster_address address = {.id = value};
    if (equals == NULL || equals == value || !parse_place(rd_slice_str(equals + 1), &address))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "--address requires ID=HOST:PORT or ID=HOST:PORT@BUSPORT");
    address.id_len = (size_t)(equals - value);
    struct cluster_address *grown =
        rd_realloc(opts->addresses, (opts->n_addresses + 1) * sizeof *grown);
    if (grown == NULL)
        return rd_err_nomem(err, (opts->n_addresses + 1) * sizeof *grown);
    opts->addresses = grown;
    opts->addresses[opts->n_addresses++] = address;
    return true;
}

static int run_check(struct cluster_run *run)
{
    if (run->cli->n_args > 2)
        return cli_usage_error(run->cli, "check asks one cluster: give one URL");
    if (run->opts.fix || run->opts.output != NULL || run->opts.prefer != NULL ||
        run->opts.n_addresses > 0)
        return cli_usage_error(run->cli, "check changes nothing: these options are of nodes-conf");
    return cluster_check(run);
}

static int run_nodes_conf(struct cluster_run *run)
{
    if (run->cli->n_args < 2)
        return cli_usage_error(run->cli, "missing argument: FILE");
    if (run->opts.fix && run->opts.output != NULL)
        return cli_usage_error(run->cli, "--fix and --output exclude each other");
    if (run->opts.fix && run->cli->json && !run->opts.yes)
        return cli_usage_error(run->cli, "--json cannot ask for confirmation: use --yes");
    return cluster_nodes_conf(run);
}

static int run_action(struct cluster_run *run)
{
    static const char *const actions[] = {"check", "nodes-conf"};
    const char *action = run->cli->args[0];
    char quoted[100];
    if (strcmp(action, "check") == 0)
        return run_check(run);
    if (strcmp(action, "nodes-conf") == 0)
        return run_nodes_conf(run);
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(action));
    const char *near = cli_nearest(action, actions, sizeof actions / sizeof actions[0]);
    return near != NULL
               ? cli_usage_error(run->cli, "unknown action %s; did you mean %s?", quoted, near)
               : cli_usage_error(run->cli, "unknown action %s", quoted);
}

int tool_cluster(struct cli *cli, int argc, char **argv)
{
    struct cluster_run run = {.cli = cli};
    const struct cli_opt opts[] = {
        {.name = "fix",
         .kind = CLI_FLAG,
         .flag = &run.opts.fix,
         .help = "repair the files in place, after a copy"},
        {.name = "output",
         .letter = 'o',
         .kind = CLI_STRING,
         .arg = "DIR",
         .string = &run.opts.output,
         .help = "write repaired files into this folder"},
        {.name = "address",
         .kind = CLI_EACH,
         .arg = "ID=HOST:PORT",
         .each = add_address,
         .ctx = &run.opts,
         .help = "the new address of a node"},
        {.name = "prefer",
         .kind = CLI_STRING,
         .arg = "ID",
         .string = &run.opts.prefer,
         .help = "give disputed slots to this node"},
        {.name = "yes",
         .kind = CLI_FLAG,
         .flag = &run.opts.yes,
         .brief = true,
         .help = "--fix: do not ask"},
        {.name = "no-copy",
         .kind = CLI_FLAG,
         .flag = &run.opts.no_copy,
         .brief = true,
         .help = "--fix: keep no copies"},
        {.name = "force",
         .kind = CLI_FLAG,
         .flag = &run.opts.force,
         .brief = true,
         .help = "--output: replace files that exist"},
        PEER_URL_OPTIONS(&run.opts.peer),
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "nodes-conf [OPTION…] [ID=]FILE…",
        .about =
            "Reads the nodes.conf files of a Redis or Valkey cluster together, reports damage\n"
            "and contradictions, and repairs them.",
        .opts = opts,
        .min_args = 1,
        .max_args = CLI_MANY,
        .example = "redoubt cluster check redis://node1.example:6379",
    };
    int status;
    peer_opts_init(&run.opts.peer);
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = run_action(&run);
    rd_free(run.opts.addresses);
    peer_opts_done(&run.opts.peer);
    return status;
}
