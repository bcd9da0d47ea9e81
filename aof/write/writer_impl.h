/* writer_impl.h - the parts of the writer.
 *
 * Positions are offsets of the stream of commands, not of a file. The buffer holds the bytes from
 * `kept` on:
 *
 *     kept <= durable (or written)   whole <= written <= end of the last whole command <= end
 *
 * With an fsync policy bytes stay in it until they are durable; else until they are written.
 */
#ifndef AOF_WRITE_WRITER_IMPL_H
#define AOF_WRITE_WRITER_IMPL_H

#include "aof/writer.h"
#include "base/buf.h"

#define AOF_DB_NONE UINT64_MAX

/* The state set by the commands so far, so that the next command need not repeat it. */
struct aof_said {
    uint64_t db;
    int64_t time_s;
};

struct aof_writer {
    struct rd_fs fs;
    char *name;
    enum aof_fsync fsync;
    bool timestamps;

    enum aof_writer_begin begin; /* CONTINUE once a rewrite was committed */
    struct aof_manifest manifest;
    int fd;         /* of the last incremental file; -1: none */
    uint64_t shift; /* offset in the file = offset in the stream + shift, modulo 2^64 */

    struct rd_buf buf;
    uint64_t kept;
    uint64_t whole;   /* the file can be truncated to here */
    uint64_t written; /* the file ends here */
    uint64_t durable;
    struct aof_said said;

    bool in_multi;
    size_t multi_at;    /* where it begins in the buffer, including SELECT and annotation */
    size_t multi_empty; /* where the buffer ended after MULTI */
    struct aof_said multi_said;

    bool syncing;
    bool doubt;        /* an fsync failed: data that is not durable must be written again */
    bool sync_failed;  /* … and none has succeeded since */
    bool write_failed; /* the last write(2) */
    bool dead;
    bool folder_pending; /* the manifest may not be durable yet: keep history */
    bool file_pending;   /* nor the name of the current file in it */
    struct rd_err err;

    bool rewriting;
    uint64_t rewrite_seq; /* its first incremental file */
    uint64_t size_before; /* of base and incremental files before the current one */
    uint64_t size_rewritten;
};

/* ---- folder.c: names, the manifest ---- */

enum aof_stored {
    AOF_STORED,
    AOF_STORED_NOT,    /* the old manifest is valid */
    AOF_STORED_UNSURE, /* the new one is valid, but after a crash it may be the old one */
};

/* A missing manifest is an empty one. */
bool aof_folder_load(const struct rd_fs *fs, const char *name, struct aof_manifest *ret,
                     struct rd_err *err);
enum aof_stored aof_folder_store(const struct rd_fs *fs, const char *name,
                                 const struct aof_manifest *m, struct rd_err *err);
/* Opens, does an fsync, closes; cut: to cut_to bytes before it. */
bool aof_folder_sync_file(const struct rd_fs *fs, const char *name, bool cut, uint64_t cut_to,
                          struct rd_err *err);
/* Makes all names durable. */
bool aof_folder_settle(struct aof_writer *w, struct rd_err *err);
/* RD_ERR_IO, about a file. */
bool aof_folder_err(struct rd_err *err, int result, const char *what, const char *name);
/* The name of the next file of a type, with a number greater than all existing ones. */
bool aof_folder_next(const struct aof_writer *w, enum aof_type type, bool snapshot, char *dst,
                     struct aof_file *ret, struct rd_err *err);

/* "temp-NAME.incr": the file for commands of a log that is not valid yet. */
bool aof_folder_temp_incr(const struct aof_writer *w, char *dst, struct rd_err *err);

/* ---- writer_flush.c ---- */

/* The end of the last command or transaction that may be written. */
uint64_t aof_flush_end(const struct aof_writer *w);
/* The file that commands go to, for errors. */
const char *aof_flush_file(const struct aof_writer *w);
/* An fsync failed: remembers it. */
void aof_flush_sync_failed(struct aof_writer *w, const struct rd_err *why);
bool aof_flush_dead(const struct aof_writer *w, struct rd_err *err);

/* ---- writer_rewrite.c ---- */

/* Begins the next incremental file and switches to it. */
bool aof_rewrite_next_file(struct aof_writer *w, struct rd_err *err);

#endif
