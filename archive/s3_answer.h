/* s3_answer.h - parses the answers of S3; private to archive/.
 *
 * Answers are small XML documents from a server that may be hostile. They are searched for a few
 * elements, and nothing in them is trusted: a name that a repository cannot have is ignored.
 */
#ifndef ARCHIVE_S3_ANSWER_H
#define ARCHIVE_S3_ANSWER_H

#include "base/err.h"
#include "base/slice.h"

/* The text between <tag> and </tag>, or none. */
struct rd_slice archive_s3_text(struct rd_slice xml, const char *tag);

/* The position where a list continues: a slice of the answer, without characters that XML escapes.
 */
struct archive_s3_next {
    bool more;
    struct rd_slice token;
};

/* A page of a list of version 2: each(arg, name, size) is called for every object whose key begins
 * with prefix; name is the rest of the key. RD_ERR_PROTOCOL if the list is incomplete and its next
 * position is missing. */
bool archive_s3_page(struct rd_slice xml, const char *prefix,
                     void (*each)(void *arg, const char *name, uint64_t size), void *arg,
                     struct archive_s3_next *ret, struct rd_err *err);

/* Sets err to the error of a refused request, with code and message if the answer has them. */
bool archive_s3_refused(struct rd_slice xml, const char *method, long status, struct rd_err *err);

#endif
