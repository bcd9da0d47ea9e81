/* sentinel.h - what a Sentinel knows; private to tools/doctor/.
 *
 * sentinel.c asks a Sentinel and those that it names; sentinel_file.c reads the configuration of
 * one. Both fill in a struct doctor_view, which the judges of judge_sentinel.c compare.
 */
#ifndef TOOLS_DOCTOR_SENTINEL_H
#define TOOLS_DOCTOR_SENTINEL_H

#include <limits.h>

#include "tools/doctor/doctor.h"

enum { DOCTOR_SCRIPTS = 2, DOCTOR_FLAGS_MAX = 160, DOCTOR_ID_MAX = 64 };

/* A master, a replica or a Sentinel, with the fields of SENTINEL MASTERS, REPLICAS and SENTINELS.
 * The texts are those of the server: show them with rd_show_plain(). */
struct doctor_instance {
    char name[CLIENT_HOST_MAX];
    char host[CLIENT_HOST_MAX];
    char id[DOCTOR_ID_MAX];
    char flags[DOCTOR_FLAGS_MAX];
    char scripts[DOCTOR_SCRIPTS][PATH_MAX]; /* empty: none */
    uint64_t port;
    uint64_t quorum, config_epoch, down_after_ms, failover_timeout_ms, parallel_syncs, s_down_ms;
    uint64_t priority, link_down_ms, info_ms, ping_ms; /* of a replica */
};

struct doctor_instances {
    struct doctor_instance *at;
    size_t n;
};

struct doctor_master {
    struct doctor_instance self;
    struct doctor_instances replicas, sentinels;
};

/* What one Sentinel reports, or its file contains. */
struct doctor_view {
    struct client_target target;
    struct rd_err why; /* it does not answer; RD_ERR_OK: it does */
    struct doctor_master *masters;
    size_t n;
};

/* Who runs the Sentinel, as far as it is known: this decides what it may read and write. */
struct doctor_user {
    unsigned uid, gid;
    char groups[DOCTOR_TEXT_MAX]; /* "4 27 100" */
    char root[80];                /* before absolute paths: /proc/PID/root, or "" */
    char folder[80];              /* before relative paths: /proc/PID/cwd, or "": not known */
};

struct doctor_sentinel {
    struct doctor_view own;
    struct doctor_view *others; /* those that own.masters name, unless they are down */
    size_t n_others;
    char id[DOCTOR_ID_MAX];
    char host[CLIENT_HOST_MAX];     /* its address, as others know it; empty: not known */
    char file[PATH_MAX];            /* its configuration; empty: not known */
    char bad_line[DOCTOR_TEXT_MAX]; /* of its file: the reason why it would not start; or empty */
};

/* Whether INFO is that of a Sentinel. */
bool doctor_is_sentinel(const struct doctor *d);

/* Asks the Sentinel for everything, and then the others. False: it refuses. */
bool doctor_ask_sentinel(struct doctor *d, struct client_peer *peer, struct rd_err *err);

/* Reads the configuration of a Sentinel. RD_ERR_USAGE if the file is something else. */
bool doctor_read_sentinel(struct doctor *d, const char *path, struct rd_err *err);

void doctor_sentinel_done(struct doctor *d);

/* ---- for both ---- */

void doctor_instance_set(struct doctor_instance *instance, struct rd_slice name,
                         struct rd_slice value);
/* A new one, at the end; NULL: out of memory. */
struct doctor_instance *doctor_instances_add(struct doctor_instances *list, struct rd_err *err);
struct doctor_master *doctor_view_add(struct doctor_view *view, struct rd_err *err);
const struct doctor_master *doctor_view_find(const struct doctor_view *view, const char *name);
bool doctor_has_flag(const struct doctor_instance *instance, const char *word);

/* Whether two views of one master name different servers. */
bool doctor_masters_differ(const struct doctor_instance *a, const struct doctor_instance *b);

/* ---- sentinel_user.c ---- */

/* False: who runs the Sentinel is not known; `why` is the reason. */
bool doctor_find_user(const struct doctor *d, struct doctor_user *ret, char *why, size_t size);

/* Whether the user may read (4), write (2) or execute (1) a file, by its mode. False: *ret_error is
 * the error of the system, EROFS or EACCES. A path that cannot be resolved gives ENOTSUP. */
bool doctor_user_may(const struct doctor_user *user, const char *path, unsigned bits,
                     int *ret_error);

#endif
