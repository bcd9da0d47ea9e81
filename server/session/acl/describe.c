/* Describes a user as rules that make an equal user. */
#include "server/session/acl/user_impl.h"

/* ---- commands ---- */

static unsigned count(const uint64_t *a, const uint64_t *b, bool on)
{
    unsigned n = 0;
    for (size_t i = 0; i < ACL_WORDS; i++)
        n += (unsigned)__builtin_popcountll((on ? a[i] : ~a[i]) & b[i]);
    return n;
}

static void put_category(struct rd_buf *out, bool adds, unsigned bit)
{
    rd_buf_printf(out, " %c@%s", adds ? '+' : '-', engine_acl_name(bit));
}

/* The category that brings `shown` nearest to `left`; ACL_CATEGORIES: none does. A category must
 * have more commands in common with the selector than not, and is used once. */
static unsigned best_category(const struct acl_categories *all, const struct acl_selector *left,
                              bool adds, uint32_t used)
{
    unsigned best = ACL_CATEGORIES, least = UINT32_MAX, most = 0;
    for (unsigned bit = 0; bit < ACL_CATEGORIES; bit++) {
        const uint64_t *set = all->commands[bit];
        unsigned same = count(left->commands, set, adds);
        unsigned differs = count(left->commands, set, !adds);
        if ((used >> bit & 1) != 0 || same <= differs)
            continue;
        if (differs < least || (differs == least && same > most)) {
            best = bit;
            least = differs;
            most = same;
        }
    }
    return best;
}

/* Categories first, as long as they help; `shown` is what the rules so far allow. */
static void put_categories(const struct acl_selector *s, bool adds, struct acl_selector *shown,
                           struct rd_buf *out)
{
    struct acl_selector left = {.level = s->level};
    struct acl_categories all;
    uint32_t used = 0;
    acl_categories(s->level, &all);
    memcpy(left.commands, s->commands, sizeof left.commands);
    for (;;) {
        unsigned bit = best_category(&all, &left, adds, used);
        if (bit == ACL_CATEGORIES)
            return;
        put_category(out, adds, bit);
        acl_selector_category(shown, (uint32_t)1 << bit, adds);
        acl_selector_category(&left, (uint32_t)1 << bit, !adds);
        used |= (uint32_t)1 << bit;
    }
}

static void put_first_args(const struct acl_selector *s, const struct engine_command *command,
                           struct rd_buf *out)
{
    for (size_t i = 0; i < s->first_args.n; i++) {
        const struct acl_item *item = &s->first_args.items[i];
        if (item->bits != command->id)
            continue;
        rd_buf_printf(out, " +%s|", command->name);
        rd_buf_add(out, item->text.ptr, item->text.len);
    }
}

void acl_describe_commands(const struct acl_selector *s, struct rd_buf *out)
{
    bool adds = !acl_selector_has(s, ACL_FUTURE);
    struct acl_selector shown = {.level = s->level};
    acl_selector_everything(&shown, !adds);
    rd_buf_printf(out, adds ? "-@all" : "+@all");
    put_categories(s, adds, &shown, out);
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        if (!engine_command_at_level(c, s->level))
            continue;
        bool on = acl_selector_has(s, c->id);
        if (on != acl_selector_has(&shown, c->id)) {
            rd_buf_printf(out, " %c%s", on ? '+' : '-', c->name);
            acl_selector_command(&shown, c, on);
        }
        if (!on)
            put_first_args(s, c, out);
    }
}

/* ---- keys and channels ---- */

/* The rule `~*` excludes other patterns, `%RW~*` does not. */
void acl_describe_keys(const struct acl_selector *s, struct rd_buf *out)
{
    static const char *const marks[] = {
        [ACL_READS] = "%R~", [ACL_WRITES] = "%W~", [ACL_ANY_USE] = "~"};
    if (s->all_keys)
        rd_buf_add(out, "~*", 2);
    for (size_t i = 0; i < s->keys.n; i++) {
        const struct acl_item *item = &s->keys.items[i];
        bool star = item->bits == ACL_ANY_USE && s->keys.n > 1 && rd_slice_is(item->text, "*");
        const char *mark = star ? "%RW~" : marks[item->bits];
        rd_buf_add(out, " ", i > 0);
        rd_buf_add(out, mark, strlen(mark));
        rd_buf_add(out, item->text.ptr, item->text.len);
    }
}

void acl_describe_channels(const struct acl_selector *s, struct rd_buf *out)
{
    if (s->all_channels)
        rd_buf_add(out, "&*", 2);
    for (size_t i = 0; i < s->channels.n; i++) {
        rd_buf_add(out, " &", i > 0 ? 2 : 0);
        rd_buf_add(out, "&", i == 0);
        rd_buf_add(out, s->channels.items[i].text.ptr, s->channels.items[i].text.len);
    }
}

/* ---- a user ---- */

static void put_selector(const struct acl_selector *s, struct rd_buf *out)
{
    size_t at = out->len;
    acl_describe_keys(s, out);
    rd_buf_add(out, " ", out->len > at);
    if (!s->all_channels)
        rd_buf_printf(out, "resetchannels ");
    at = out->len;
    acl_describe_channels(s, out);
    rd_buf_add(out, " ", out->len > at);
    acl_describe_commands(s, out);
}

void acl_user_describe(const struct acl_user *user, struct rd_buf *out)
{
    rd_buf_printf(out, "%s%s%s%s", user->on ? "on " : "off ", user->nopass ? "nopass " : "",
                  user->skip_sanitize ? "skip-sanitize-payload " : "",
                  user->sanitize ? "sanitize-payload " : "");
    for (size_t i = 0; i < user->passwords.n; i++)
        rd_buf_printf(out, "#%.*s ", ACL_DIGEST, (const char *)user->passwords.items[i].text.ptr);
    put_selector(&user->selectors[0], out);
    for (size_t i = 1; i < user->n_selectors; i++) {
        rd_buf_add(out, " (", 2);
        put_selector(&user->selectors[i], out);
        rd_buf_add(out, ")", 1);
    }
}
