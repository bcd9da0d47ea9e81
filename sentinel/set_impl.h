/* set_impl.h - the options of masters and of the Sentinel. Private to sentinel/. */
#ifndef SENTINEL_SET_IMPL_H
#define SENTINEL_SET_IMPL_H

#include "sentinel/sentinel_impl.h"

enum sentinel_option {
    SENTINEL_DOWN_AFTER,
    SENTINEL_FAILOVER_TIMEOUT,
    SENTINEL_PARALLEL_SYNCS,
    SENTINEL_NOTIFICATION_SCRIPT,
    SENTINEL_RECONFIG_SCRIPT,
    SENTINEL_AUTH_PASS,
    SENTINEL_AUTH_USER,
    SENTINEL_SET_QUORUM,
    SENTINEL_RENAME,
    SENTINEL_REBOOT_DOWN_AFTER
};

/* False: no option of this name takes n_values or fewer. */
bool sentinel_option_find(struct rd_slice word, size_t n_values, enum sentinel_option *ret);
size_t sentinel_option_values(enum sentinel_option option);
/* False: a wrong value; nothing was changed. */
bool sentinel_option_set(struct sentinel_instance *m, enum sentinel_option option,
                         const struct rd_slice *values);

bool sentinel_yes_no(struct rd_slice text, bool *ret);
enum sentinel_result sentinel_global_set(struct sentinel *s, struct rd_slice option,
                                         struct rd_slice value);

/* *ret: NULL if memory is exhausted. */
enum sentinel_result sentinel_add_master(struct sentinel *s, struct rd_slice name,
                                         struct rd_slice host, int64_t port, int64_t quorum,
                                         struct sentinel_instance **ret);

#endif
