#include "base/crc16.h"

#include <criterion/criterion.h>

static uint16_t reference(const uint8_t *p, size_t len)
{
    unsigned crc = 0;
    for (; len > 0; len--) {
        crc ^= (unsigned)*p++ << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
        crc &= 0xffff;
    }
    return (uint16_t)crc;
}

static unsigned slot(const char *key)
{
    return rd_hash_slot(rd_slice_str(key));
}

Test(crc16, gives_the_check_value)
{
    cr_assert_eq(rd_crc16(0, "123456789", 9), 0x31c3);
    cr_assert_eq(rd_crc16(rd_crc16(0, "1234", 4), "56789", 5), 0x31c3);
    cr_assert_eq(rd_crc16(0x1234, NULL, 0), 0x1234);
}

Test(crc16, equals_the_definition_for_every_byte_and_pair)
{
    for (unsigned pair = 0; pair < 65536; pair++) {
        uint8_t bytes[2] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        cr_assert_eq(rd_crc16(0, bytes, 1), reference(bytes, 1), "byte %u", pair >> 8);
        cr_assert_eq(rd_crc16(0, bytes, 2), reference(bytes, 2), "pair %u", pair);
    }
}

Test(crc16, equals_the_definition_for_every_length_and_from_every_place)
{
    uint8_t bytes[67];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 7);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        cr_assert_eq(rd_crc16(0, bytes, len), reference(bytes, len), "%zu bytes", len);
        for (size_t at = 0; at <= len; at++)
            cr_assert_eq(rd_crc16(rd_crc16(0, bytes, at), bytes + at, len - at),
                         reference(bytes, len), "%zu bytes in two at %zu", len, at);
    }
}

/* Slots that CLUSTER KEYSLOT of a real server gives. */
Test(crc16, slot_of_a_plain_key)
{
    cr_expect_eq(slot("somekey"), 11058);
    cr_expect_eq(slot("foo"), 12182);
    cr_expect_eq(slot("123456789"), 0x31c3);
    cr_expect_eq(slot(""), 0);
    cr_expect_eq(rd_hash_slot(rd_slice(NULL, 0)), 0);
}

Test(crc16, slot_of_a_tagged_key_is_that_of_its_tag)
{
    cr_expect_eq(slot("{foo}"), slot("foo"));
    cr_expect_eq(slot("user:{foo}:name"), slot("foo"));
    cr_expect_eq(slot("foo{hash_tag}"), 2515);
    cr_expect_eq(slot("{a}{b}"), slot("a"), "the first tag counts");
    cr_expect_eq(slot("foo{{bar}}zap"), slot("{bar"), "from the first { to the first }");
    cr_expect_eq(slot("}{foo}"), slot("foo"), "a } before the { means nothing");
}

Test(crc16, empty_or_open_tag_leaves_the_whole_key)
{
    static const char *const keys[] = {"foo{}{bar}", "foo{bar", "foo}bar{", "{", "{}", "}{"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cr_expect_eq(slot(keys[i]), rd_crc16(0, keys[i], strlen(keys[i])) % RD_HASH_SLOTS, "%s",
                     keys[i]);
}

Test(crc16, key_may_hold_any_byte)
{
    cr_expect_eq(rd_hash_slot(rd_slice("a\0{b\0c}\0", 8)), rd_hash_slot(rd_slice("b\0c", 3)));
}
