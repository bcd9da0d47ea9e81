/* replication.h - how this server's history is named. Replicas come with later work.
 */
#ifndef SERVER_CORE_REPLICATION_H
#define SERVER_CORE_REPLICATION_H

/* 40 hexadecimal digits: of the history that is written, and of the one before it (zeros: none). */
const char *replication_id(void);
const char *replication_second_id(void);

/* Another history from here on. */
void replication_change_id(void);

#endif
