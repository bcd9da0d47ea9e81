/* views_impl.h - private to views*.c.
 *
 *     views.c          the nodes of all views, and what is said of them
 *     views_slots.c    the owners of the slots
 *     views_conf.c     the file that a node should have
 */
#ifndef CLUSTER_VIEWS_IMPL_H
#define CLUSTER_VIEWS_IMPL_H

#include "cluster/views.h"

/* False with err set: no memory. */
bool cluster_views_add(struct cluster_views *all, const struct cluster_finding *finding,
                       struct rd_err *err);

/* Decides the owners of the slots and reports what is wrong with them. */
bool cluster_views_decide_slots(struct cluster_views *all, struct rd_err *err);

#endif
