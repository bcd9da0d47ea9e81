/* fake_s3.h - a store that speaks the protocol of S3, in a thread of the test, and answers one
 * request, or all from one on, in a way of the test's choice. It does not check signatures.
 */
#ifndef TESTS_ARCHIVE_FAKE_S3_H
#define TESTS_ARCHIVE_FAKE_S3_H

#include <stdbool.h>
#include <stddef.h>

struct fake_answer {
    int status;       /* 0: the right one */
    const char *body; /* NULL: the right one */
    const char
        *headers; /* instead of those of the right answer; NULL: none with a body of its own */
    bool done;    /* the request is done before it is answered in this way */
    bool cut;     /* the connection ends instead of an answer */
    int keep;     /* so many thousandths of the body are sent, then the connection ends; 0: all */
    bool whole;   /* with keep: the announced length is that of what is sent */
};

struct fake_s3;

struct fake_s3 *fake_s3_start(void);
void fake_s3_stop(struct fake_s3 *fake);
unsigned fake_s3_port(const struct fake_s3 *fake);

/* The n-th request from now on (from 1) is answered so; with `always` also all later ones. NULL:
 * none. Resets the count. */
void fake_s3_answer(struct fake_s3 *fake, const struct fake_answer *answer, unsigned n,
                    bool always);
unsigned fake_s3_count(const struct fake_s3 *fake);
/* How many objects a page of a list has. */
void fake_s3_page(struct fake_s3 *fake, unsigned n);

/* The size of the parts of an upload, but for the last one. */
void fake_s3_part(struct fake_s3 *fake, size_t size);

/* The objects, while no request runs. Their keys are those after the bucket. */
void fake_s3_clear(struct fake_s3 *fake);
void fake_s3_set(struct fake_s3 *fake, const char *key, const void *bytes, size_t len);
bool fake_s3_has(const struct fake_s3 *fake, const char *key);
bool fake_s3_is(const struct fake_s3 *fake, const char *key, const void *bytes, size_t len);
size_t fake_s3_objects(const struct fake_s3 *fake);
/* Uploads in parts that are neither completed nor aborted. */
size_t fake_s3_uploads(const struct fake_s3 *fake);

#endif
