/* check_impl.h - the state of a check, and its judgement of commands. */
#ifndef AOF_CHECK_CHECK_IMPL_H
#define AOF_CHECK_CHECK_IMPL_H

#include "aof/check.h"
#include "aof/check/names.h"
#include "aof/log.h"

struct check {
    struct aof_check_opts opts;
    struct aof_check_result res;
    struct aof_check_file *files; /* to which res.files points */
    struct rd_err *err;
    struct aof_check_file *file;    /* that is read */
    struct aof_check_detail detail; /* of it */
    size_t n_details;               /* kept */
    struct aof_log *log;
    bool in_multi, expect_after;
    uint64_t multi, multi_line, multi_number; /* the last MULTI that begins a transaction */
    /* A MULTI in it, up to its own EXEC and after it: the EXEC of the transaction is to come. */
    bool in_inner, has_inner;
    uint64_t inner, inner_line, inner_number; /* the first one */
    uint64_t n_inner;                         /* of the file, each with its EXEC */
    uint64_t failed_line;                     /* of file->err */
    uint64_t known;                           /* commands of the file with a known name */
    const struct aof_kind *kind;              /* of the file, by its first bytes; or NULL */
    uint8_t first;                            /* its first byte */
    int64_t base_time;                        /* time of the base, or AOF_NO_TIME */
    const char *base_clock;                   /* the source of that time */
    struct aof_names names;
    char text[RD_ERR_TEXT_MAX];
};

/* Reports a finding at a place in the current file. */
void aof_check_report(struct check *c, enum aof_finding_id id, uint64_t offset, uint64_t line,
                      uint64_t command, const char *text);
/* Reports a finding about a file as a whole. */
void aof_check_report_file(struct check *c, enum aof_finding_id id, const char *name,
                           const char *text);
/* The file is damaged from here on: only the bytes before `ok` are certain. */
void aof_check_broke(struct check *c, enum rd_err_code code, uint64_t offset, uint64_t ok,
                     uint64_t ok_line, const char *text);

/* ---- commands.c ---- */

void aof_check_command(struct check *c, const struct aof_log_entry *e);
void aof_check_annotation(struct check *c, const struct aof_log_entry *e);
/* The EXEC of a MULTI in a transaction is missing. */
void aof_check_exec_missing(struct check *c);
/* At the end of a file: transactions inside transactions. */
void aof_check_report_inner(struct check *c);
/* At the end of the log. */
void aof_check_report_names(struct check *c);

#endif
