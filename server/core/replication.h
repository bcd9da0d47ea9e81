/* replication.h - the replication IDs of this server. Replicas are not supported yet.
 */
#ifndef SERVER_CORE_REPLICATION_H
#define SERVER_CORE_REPLICATION_H

/* 40 hexadecimal digits: the ID of the current history, and of the previous one (zeros: none). */
const char *replication_id(void);
const char *replication_second_id(void);

/* Starts a new history. */
void replication_change_id(void);

#endif
