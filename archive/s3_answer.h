/* s3_answer.h - reads what S3 answers; private to archive/.
 *
 * Answers are small documents of XML. They come from a server that may be anything, so they are
 * searched for a few elements and trusted in nothing: a name that a repository cannot have is left
 * out.
 */
#ifndef ARCHIVE_S3_ANSWER_H
#define ARCHIVE_S3_ANSWER_H

#include "base/err.h"
#include "base/slice.h"

/* The text between <tag> and </tag>, or none. */
struct rd_slice archive_s3_text(struct rd_slice xml, const char *tag);

/* The place where a list continues: a slice of the answer, without characters that XML escapes. */
struct archive_s3_next {
    bool more;
    struct rd_slice token;
};

/* A page of a list of version 2: each(arg, name, size) for every object whose key begins with
 * prefix, without it. RD_ERR_PROTOCOL if it is incomplete and does not say where it continues. */
bool archive_s3_page(struct rd_slice xml, const char *prefix,
                     void (*each)(void *arg, const char *name, uint64_t size), void *arg,
                     struct archive_s3_next *ret, struct rd_err *err);

/* The error of a refused request, into err: with code and message where the answer has them. */
bool archive_s3_refused(struct rd_slice xml, const char *method, long status, struct rd_err *err);

#endif
