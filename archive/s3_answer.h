/* s3_answer.h - parses the answers of S3; private to archive/.
 *
 * Answers are small XML documents from a server that may be hostile. A document must be whole and
 * have the root element that the request asks for: a list that was cut, or the page of a proxy, is
 * an error and never an empty list. Nothing in them is trusted: a name that a repository cannot
 * have is ignored.
 */
#ifndef ARCHIVE_S3_ANSWER_H
#define ARCHIVE_S3_ANSWER_H

#include "archive/page.h"
#include "base/slice.h"

enum {
    ARCHIVE_S3_POSITION_MAX = ARCHIVE_POSITION_MAX,
    ARCHIVE_S3_CODE_MAX = 64,
    ARCHIVE_S3_ID_MAX = 1025,
    ARCHIVE_S3_ESCAPED_MAX = 3 * ARCHIVE_S3_ID_MAX
};

/* Whether all parts of a prefix can be in a key and a URL: RD_ERR_USAGE if not. */
bool archive_s3_check_prefix(const char *prefix, struct rd_err *err);

/* The position where a list continues. */
struct archive_s3_next {
    bool more;
    char token[ARCHIVE_S3_POSITION_MAX];
};

/* A page of a list of version 2: each(arg, object) is called for every object; its name is the key
 * after `skip` bytes, which are at most those of prefix. RD_ERR_PROTOCOL if the document is not a
 * whole list, has a key that does not begin with prefix, or continues nowhere; then nothing is
 * called. */
bool archive_s3_page(struct rd_slice xml, const char *prefix, size_t skip, archive_each_fn *each,
                     void *arg, struct archive_s3_next *ret, struct rd_err *err);

/* A page of the uploads in parts that were not completed: each(arg, name, id) for those whose key
 * begins with prefix; name is the key after `skip` bytes. */
struct archive_s3_next_upload {
    bool more;
    char key[ARCHIVE_S3_POSITION_MAX], id[ARCHIVE_S3_ID_MAX];
};

bool archive_s3_uploads(struct rd_slice xml, const char *prefix, size_t skip,
                        void (*each)(void *arg, const char *name, const char *id), void *arg,
                        struct archive_s3_next_upload *ret, struct rd_err *err);

/* The text of an element of the root, or "". RD_ERR_PROTOCOL if the document has another root or is
 * not whole. */
bool archive_s3_field(struct rd_slice xml, const char *root, const char *field, char *ret,
                      size_t size, struct rd_err *err);

/* The text of an element of an error. What follows it may be cut or wrong: stores repeat the key
 * there, and some do not escape it as XML. False: there is no such element, or it is empty. */
bool archive_s3_error_field(struct rd_slice xml, const char *name, char *ret, size_t size);

/* Whether the document is an error with this code: "NoSuchKey". */
bool archive_s3_is_error(struct rd_slice xml, const char *code);

/* Sets err to the error of a refused request, with code and message if the answer has them. */
bool archive_s3_refused(struct rd_slice xml, const char *method, long status, struct rd_err *err);

#endif
