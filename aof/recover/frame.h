/* frame.h - parses the framing of one command at any offset of a file.
 *
 * Private to salvage. aof/log.h reads a log from its beginning and returns arguments; this parser
 * works at any offset, repeatedly, and returns offsets.
 */
#ifndef AOF_RECOVER_FRAME_H
#define AOF_RECOVER_FRAME_H

#include "aof/aof.h"
#include "base/src.h"

/* A view of a file at any offset. */
struct aof_recover_in {
    struct rd_src *src;
    uint64_t size;
    uint64_t off; /* of win */
    struct rd_slice win;
    struct rd_err *err;
    bool failed; /* see err */
    /* A view of another one without [hole, hole + hole_len): NULL: of src. */
    struct aof_recover_in *of;
    uint64_t hole, hole_len;
    uint8_t seam[64];
};

void aof_recover_in_init(struct aof_recover_in *in, struct rd_src *src, struct rd_err *err);

/* A view of `of` in which the bytes [from, to) are left out. */
void aof_recover_in_without(struct aof_recover_in *in, struct aof_recover_in *of, uint64_t from,
                            uint64_t to);

/* Returns the bytes in the window from `at` on, at least `want` bytes (64 at most) unless the file
 * ends. *ret is valid until the next call. 0: the end, or a failure. */
size_t aof_recover_look(struct aof_recover_in *in, uint64_t at, size_t want, const uint8_t **ret);

/* One byte, or -1 at the end. */
int aof_recover_byte(struct aof_recover_in *in, uint64_t at);

enum frame_status {
    FRAME_OK,
    FRAME_BROKEN,
    FRAME_CUT, /* the file ends inside the command */
    FRAME_END,
    FRAME_FAIL
};

enum frame_kind { FRAME_COMMAND, FRAME_ANNOTATION };

enum { FRAME_NAME = 48, FRAME_ARGS = 8 };

struct frame {
    enum frame_kind kind;
    uint64_t start, end; /* OK */
    uint64_t bad;        /* BROKEN and CUT: the first wrong byte */
    const char *why;
    uint64_t argc;             /* as declared; 0: its count could not be read */
    uint64_t bulk;             /* CUT: declared length of the argument in which the file ends */
    uint64_t done;             /* arguments that were read whole */
    uint64_t args[FRAME_ARGS]; /* offset of the '$' of argument i at [i % FRAME_ARGS], up to and
                                  with the one that broke */
    uint8_t name[FRAME_NAME];  /* the first argument, if it fits */
    size_t name_len;           /* 0: longer, or not read */
    uint64_t shape; /* of a command: its name and the form of its first argument, as a hash */
    bool has_db;    /* the second argument is a number below 2^31 */
    uint64_t db;
    int64_t time_s; /* of a time annotation, or AOF_NO_TIME */
};

enum frame_status aof_recover_frame(struct aof_recover_in *in, uint64_t at, struct frame *ret);

/* "$3 CRLF abc CRLF" at *at, which moves after it. */
bool aof_recover_arg(struct aof_recover_in *in, uint64_t *at);

/* Compares names without case. */
bool aof_recover_is(const struct frame *f, const char *name);

/* Whether it is a command without arguments whose name differs from `name` in one letter. */
bool aof_recover_is_near(const struct frame *f, const char *name);

/* The forms of the commands that were read, to tell commands of the log from text that looks like
 * commands. */
struct aof_recover_forms {
    uint64_t bits[64], argc_bits[64];
    uint64_t n, n_new; /* commands, and those whose form was not known before */
    bool ahead;        /* the commands after the first damage were looked at */
};

void aof_recover_forms_add(struct aof_recover_forms *forms, const struct frame *f);
bool aof_recover_forms_has(const struct aof_recover_forms *forms, const struct frame *f);
/* With that number of arguments. */
bool aof_recover_forms_has_argc(const struct aof_recover_forms *forms, const struct frame *f,
                                uint64_t argc);

/* Whether it looks like the name of a command. */
bool aof_recover_is_name(const struct frame *f);

#endif
