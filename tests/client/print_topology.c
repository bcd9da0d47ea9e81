/* print_topology cluster|partial URL | sentinel NAME LIKE URL… - prints what client/topology.h
 * finds, for tests. */
#include "client/topology.h"
#include "tools/cli/peer_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTINELS_MAX = 8 };

static int fail(const struct rd_err *err)
{
    char line[1024];
    fprintf(stderr, "%s\n", rd_err_render(err, line, sizeof line));
    return rd_err_exit_status(err->code);
}

static int print_cluster(struct peer_opts *opts, const char *url, bool partial)
{
    struct rd_err err = {0};
    struct client_target target = {0};
    struct client_topology t = {.partial = partial};
    struct client_peer *peer = NULL;
    bool ok = peer_target_find(&target, opts, url, &err) &&
              client_peer_open(&peer, &target, &err) && client_topology_read(&t, peer, &err);
    for (size_t i = 0; i < t.n; i++) {
        printf("%s:%u %s", t.nodes[i].host, t.nodes[i].port, t.nodes[i].id);
        for (size_t j = 0; j < t.nodes[i].n_ranges; j++)
            printf(" %u-%u", t.nodes[i].ranges[j].first, t.nodes[i].ranges[j].last);
        for (size_t j = 0; j < t.nodes[i].n_members; j++)
            if (strcmp(t.nodes[i].members[j], t.nodes[i].id) != 0)
                printf(" with %s", t.nodes[i].members[j]);
        printf("\n");
    }
    printf("%u\n", t.n_slots);
    client_topology_done(&t);
    client_peer_close(peer);
    client_target_done(&target);
    return ok ? 0 : fail(&err);
}

static int print_master(struct peer_opts *opts, char **argv, int argc)
{
    struct rd_err err = {0};
    struct client_target sentinels[SENTINELS_MAX] = {0}, like = {0}, master = {0};
    size_t n = 0;
    bool ok = peer_target_find(&like, opts, argv[1], &err);
    for (int i = 2; ok && i < argc && n < SENTINELS_MAX; i++)
        ok = peer_target_find(&sentinels[n++], opts, argv[i], &err);
    ok = ok && client_topology_find_master(&master, sentinels, n, argv[0], &like, &err);
    if (ok)
        printf("%s\n", master.name);
    client_target_done(&master);
    client_target_done(&like);
    while (n > 0)
        client_target_done(&sentinels[--n]);
    return ok ? 0 : fail(&err);
}

int main(int argc, char **argv)
{
    struct peer_opts opts;
    int status = 2;
    peer_opts_init(&opts);
    opts.connect.timeout_ms = 2000;
    opts.connect.insecure = getenv("PRINT_INSECURE") != NULL;
    if (argc == 3 && (strcmp(argv[1], "cluster") == 0 || strcmp(argv[1], "partial") == 0))
        status = print_cluster(&opts, argv[2], strcmp(argv[1], "partial") == 0);
    else if (argc >= 4 && strcmp(argv[1], "sentinel") == 0)
        status = print_master(&opts, argv + 2, argc - 2);
    peer_opts_done(&opts);
    return status;
}
