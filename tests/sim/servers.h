/* servers.h - whole servers with their replicas in one process: a simulation.
 *
 * Up to four servers run as they are, with their commands, logs, snapshots and replication. What is
 * below them is replaced: libuv by servers_loop.c, sockets by servers_net.c, the clock, random
 * numbers, background threads and the end of a process by servers_os.c. Files are real, in a folder
 * that is removed at the end, and children are real copies of the process that run while it waits.
 *
 *     servers.c           what happens and what must hold
 *     servers_host.c      starting, running and killing servers
 *     servers_clients.c   what is written, and what its clients were told
 *
 * While it runs, two servers that report one place in one history must have one data set. At the
 * end, when nothing fails any more, all replicas must reach their master, with its data; a list has
 * what its client wrote, in order and once; and nothing of what a client was told is missing,
 * unless a failover or a crash without a log allows that.
 */
#ifndef TESTS_SIM_SERVERS_H
#define TESTS_SIM_SERVERS_H

#include <stdint.h>

struct sim_servers {
    uint64_t runs;
    uint64_t commands; /* of clients, with a reply */
    uint64_t lost;     /* and those without one */
    uint64_t kills;
    uint64_t disk_kills; /* during an operation on a file */
    uint64_t stops;      /* by SHUTDOWN, or because the disk failed */
    uint64_t cuts;
    uint64_t resets;
    uint64_t promotions;
    uint64_t failovers; /* by FAILOVER */
    uint64_t children;
    uint64_t children_killed;
    uint64_t disks_full;
    uint64_t full_syncs;
    uint64_t partial_syncs;
    uint64_t places; /* that two servers were compared at */
};

/* NULL: it passed; or what failed. Adds to the sums. */
const char *sim_servers_run(uint64_t seed, struct sim_servers *sums);

/* The same, and prints what happens. The folder with the files and logs of the servers stays. */
const char *sim_servers_trace(uint64_t seed, struct sim_servers *sums);

#endif
