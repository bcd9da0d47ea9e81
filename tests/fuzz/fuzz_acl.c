/* fuzz_acl.c - any words are rules or errors, and a description makes a user that allows the same.
 *
 * Each line of the input is a rule. Then the user is described, another user is made from the
 * description, and both must have the same description and the same verdicts.
 */
#include "server/session/acl/user_impl.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_acl: %s\n", what);
    abort();
}

static void apply_lines(struct acl_user *user, struct rd_slice text)
{
    while (text.len > 0) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len;
        enum acl_fault fault = acl_user_rule(user, rd_slice(text.ptr, len), false);
        check((fault == ACL_FAULT_NONE) == (acl_fault_text(fault)[0] == '\0'), "error text");
        len += end != NULL;
        text = rd_slice(text.ptr + len, text.len - len);
    }
}

/* Blanks separate words, except in parentheses. */
static void apply_description(struct acl_user *user, struct rd_slice text)
{
    while (text.len > 0) {
        bool open = text.ptr[0] == '(';
        const uint8_t *end =
            open ? memmem(text.ptr, text.len, ") (", 3) : memchr(text.ptr, ' ', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) + open : text.len;
        check(acl_user_rule(user, rd_slice(text.ptr, len), false) == ACL_FAULT_NONE,
              "a description is not valid");
        len += len < text.len;
        text = rd_slice(text.ptr + len, text.len - len);
    }
}

/* Quotation marks mean something else inside parentheses, and a first argument can have blanks. */
static bool can_be_read_back(const struct acl_user *user, struct rd_slice text)
{
    for (size_t i = 0; i < user->n_selectors; i++) {
        const struct acl_list *args = &user->selectors[i].first_args;
        for (size_t k = 0; k < args->n; k++)
            if (acl_text_has_blanks(args->items[k].text))
                return false;
    }
    for (size_t i = 0; i < text.len; i++)
        if (memchr("\"'\\", text.ptr[i], 3) != NULL)
            return false;
    return true;
}

static enum acl_verdict verdict(const struct acl_user *user, struct rd_slice name)
{
    struct rd_slice argv[] = {rd_slice_str("set"), name, rd_slice_str("v")};
    size_t at = 0;
    enum acl_verdict found = acl_check(user, engine_command_resolve(argv, 3), 3, argv, &at);
    check(at < 3, "place of a refusal");
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_buf first = {0}, second = {0};
    struct acl_user *user = acl_user_new(rd_slice_str("u"), size % 2 != 0, ENGINE_LEVEL_7_0);
    struct acl_user *again = acl_user_new(rd_slice_str("u"), false, ENGINE_LEVEL_7_0);
    struct acl_user *copy = acl_user_new(rd_slice_str("u"), false, ENGINE_LEVEL_7_0);
    apply_lines(user, rd_slice(data, size));
    acl_user_copy(copy, user);
    acl_user_describe(copy, &first);
    struct rd_slice name = rd_slice(data, size < 8 ? size : 8);
    check(verdict(user, name) == verdict(copy, name), "a copy decides otherwise");
    if (can_be_read_back(user, rd_buf_slice(&first))) {
        apply_description(again, rd_buf_slice(&first));
        acl_user_describe(again, &second);
        check(rd_slice_eq(rd_buf_slice(&first), rd_buf_slice(&second)), "another description");
        check(verdict(user, name) == verdict(again, name), "the description decides otherwise");
    }
    rd_buf_done(&first);
    rd_buf_done(&second);
    acl_user_free(user);
    acl_user_free(again);
    acl_user_free(copy);
    return 0;
}
