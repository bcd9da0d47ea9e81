/* nodes_conf_impl.h - private to nodes_conf*.c and conf.c.
 *
 *     nodes_conf.c         the file, and the list of its nodes
 *     nodes_conf_line.c    one line
 *     nodes_conf_write.c   writing
 */
#ifndef CLUSTER_NODES_CONF_IMPL_H
#define CLUSTER_NODES_CONF_IMPL_H

#include "cluster/nodes_conf.h"

/* What is wrong in a line; `text` is for people. */
struct cluster_conf_fault {
    enum cluster_conf_problem problem;
    char text[RD_ERR_TEXT_MAX];
};

struct cluster_flag_word {
    enum cluster_flag flag;
    const char *word;
};

enum {
#define X(name, bit, word) +1
    CLUSTER_N_FLAGS = CLUSTER_FLAGS(X)
#undef X
};
extern const struct cluster_flag_word
    cluster_flag_words[CLUSTER_N_FLAGS]; /* as servers write them */

enum cluster_conf_line {
    CLUSTER_CONF_LINE_NODE,
    CLUSTER_CONF_LINE_VARS, /* conf->current_epoch and last_vote_epoch are set */
    CLUSTER_CONF_LINE_BAD,  /* *fault is set */
    CLUSTER_CONF_LINE_MEMORY
};

/* Parses a line without its end, which is not blank. *node is zeroed, and set for a node; its
 * memory belongs to the caller in any case. */
enum cluster_conf_line cluster_conf_parse_line(struct rd_slice line, struct cluster_conf *conf,
                                               struct cluster_conf_node *node,
                                               struct cluster_conf_fault *fault);

/* Cuts off what is before the first `at`, or everything. */
struct rd_slice cluster_conf_take_until(struct rd_slice *rest, char at);

void cluster_conf_free_node(struct cluster_conf_node *node);

#endif
