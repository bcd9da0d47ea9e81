/* endian.h - integers in a fixed byte order, at any alignment.
 *
 * The file formats mix both orders; the description of each field states its byte order.
 */
#ifndef BASE_ENDIAN_H
#define BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t rd_get_le16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

static inline uint32_t rd_get_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static inline uint64_t rd_get_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static inline uint16_t rd_get_be16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return be16toh(v);
}

static inline uint32_t rd_get_be32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return be32toh(v);
}

static inline uint64_t rd_get_be64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return be64toh(v);
}

static inline void rd_put_le16(void *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof v);
}

static inline void rd_put_le32(void *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static inline void rd_put_le64(void *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

static inline void rd_put_be16(void *p, uint16_t v)
{
    v = htobe16(v);
    memcpy(p, &v, sizeof v);
}

static inline void rd_put_be32(void *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, sizeof v);
}

static inline void rd_put_be64(void *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, sizeof v);
}

/* A little-endian IEEE double, and back. */
static inline double rd_get_le_f64(const void *p)
{
    uint64_t bits = rd_get_le64(p);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void rd_put_le_f64(void *p, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    rd_put_le64(p, bits);
}

#endif
