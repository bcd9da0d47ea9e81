#include "archive/retain.h"

#include "base/num.h"

enum { MS = 1000, MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, N_MAX = 1000000 };

static const char *const words[] = {
#define X(name, word) word,
    ARCHIVE_RULES(X)
#undef X
};

const char *archive_rule_word(enum archive_rule rule)
{
    return words[rule];
}

/* ---- the text ---- */

bool archive_get_duration(struct rd_slice text, uint64_t *ret_ms)
{
    static const struct {
        char letter;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', MINUTE_S}, {'h', HOUR_S}, {'d', DAY_S}, {'w', 7 * DAY_S}};
    uint64_t n;
    if (text.len < 2 || !rd_num_get_u64(rd_slice(text.ptr, text.len - 1), &n) || n > N_MAX)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (text.ptr[text.len - 1] == units[i].letter) {
            *ret_ms = n * units[i].seconds * MS;
            return true;
        }
    }
    return false;
}

static bool blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* Cuts a word off the front of *text, with the white space around it. */
static struct rd_slice take_word(struct rd_slice *text)
{
    const uint8_t *p = text->ptr, *end = p + text->len;
    while (p < end && blank(*p))
        p++;
    const uint8_t *word = p;
    while (p < end && !blank(*p))
        p++;
    struct rd_slice ret = rd_slice(word, (size_t)(p - word));
    while (p < end && blank(*p))
        p++;
    *text = rd_slice(p, (size_t)(end - p));
    return ret;
}

static bool parse_tag(struct archive_retention *rules, struct rd_slice text, struct rd_err *err)
{
    if (rules->n_tags == ARCHIVE_RETAIN_TAGS)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "more than %d rules with tags",
                          ARCHIVE_RETAIN_TAGS);
    return archive_tag_choice_parse(&rules->tags[rules->n_tags], text, err) && ++rules->n_tags > 0;
}

bool archive_retention_has_tag(const struct archive_retention *rules,
                               const struct archive_tag *tags, size_t n)
{
    for (size_t i = 0; i < rules->n_tags; i++)
        if (archive_tag_choice_has(&rules->tags[i], tags, n))
            return true;
    return false;
}

static bool parse_rule(struct archive_retention *rules, struct rd_slice text, struct rd_err *err)
{
    char quoted[80];
    struct rd_slice rest = text, word = take_word(&rest), number = take_word(&rest);
    rd_err_quote(quoted, sizeof quoted, text);
    if (rd_slice_is(word, words[ARCHIVE_RULE_TAG]) && number.len > 0 && rest.len == 0)
        return parse_tag(rules, number, err);
    for (unsigned i = 0; i < ARCHIVE_RULES_GIVEN; i++) {
        uint64_t n;
        if (!rd_slice_is(word, words[i]))
            continue;
        bool ok = i == ARCHIVE_RULE_AGE ? archive_get_duration(number, &n)
                                        : rd_num_get_u64(number, &n) && n <= N_MAX;
        if (!ok || n == 0 || rest.len > 0)
            break;
        if (rules->n[i] != 0)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the rule %s is given twice",
                              words[i]);
        rules->n[i] = n;
        return true;
    }
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "invalid rule %s: use, for example, \"hourly 48\" or \"age 30d\"", quoted);
}

typedef bool (*parse_fn)(struct archive_retention *rules, struct rd_slice text, struct rd_err *err);

/* The parts of a text that commas separate. *ret is set if all of them are good. */
static bool parse_each(parse_fn parse, struct archive_retention *rules, struct rd_slice text,
                       struct archive_retention *ret, struct rd_err *err)
{
    for (struct rd_slice rest = text;;) {
        const uint8_t *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma != NULL ? (size_t)(comma - rest.ptr) : rest.len;
        if (!parse(rules, rd_slice(rest.ptr, len), err))
            return false;
        if (comma == NULL)
            break;
        rest = rd_slice(comma + 1, rest.len - len - 1);
    }
    *ret = *rules;
    return true;
}

bool archive_retention_parse(struct archive_retention *ret, struct rd_slice text,
                             struct rd_err *err)
{
    struct archive_retention rules = {.n_tags = 0};
    struct rd_slice rest = text;
    if (take_word(&rest).len == 0) {
        *ret = rules;
        return true;
    }
    return parse_each(parse_rule, &rules, text, ret, err);
}

/* What can be a time is one: 10m are ten minutes. */
static bool parse_limit(struct archive_retention *rules, struct rd_slice text, struct rd_err *err)
{
    char quoted[80];
    struct rd_slice rest = text, word = take_word(&rest);
    uint64_t n;
    bool time = archive_get_duration(word, &n);
    uint64_t *limit = time ? &rules->stream_ms : &rules->stream_bytes;
    rd_err_quote(quoted, sizeof quoted, text);
    bool unit = word.len > 0 && (word.ptr[word.len - 1] < '0' || word.ptr[word.len - 1] > '9');
    if (!unit || (!time && !rd_num_get_size(word, &n)) || n == 0 || rest.len > 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "%s is neither a time such as 7d nor a size such as 10gb", quoted);
    if (*limit != 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "two %s are given",
                          time ? "times" : "sizes");
    *limit = n;
    return true;
}

bool archive_retention_parse_stream(struct archive_retention *ret, struct rd_slice text,
                                    struct rd_err *err)
{
    struct archive_retention rules = *ret;
    rules.stream_ms = rules.stream_bytes = 0;
    return parse_each(parse_limit, &rules, text, ret, err);
}

bool archive_retention_given(const struct archive_retention *rules)
{
    for (unsigned i = 0; i < ARCHIVE_RULES_GIVEN; i++)
        if (rules->n[i] != 0)
            return true;
    return rules->n_tags > 0;
}

/* ---- the calendar ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Years and months since the year 0 of the Gregorian calendar. Days are counted in eras of 400
 * years from the first of March, so that the leap day is the last day of its year. */
static int64_t month_of(int64_t day)
{
    int64_t from_march = day + 719468;
    int64_t era = floor_div(from_march, 146097);
    int64_t in_era = from_march - era * 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153;
    return (era * 400 + year) * 12 + month + 2;
}

/* The number of the hour, day and so on that contains a time. */
static int64_t period_of(enum archive_rule rule, int64_t time_ms)
{
    int64_t seconds = floor_div(time_ms, MS);
    int64_t day = floor_div(seconds, DAY_S);
    switch (rule) {
    case ARCHIVE_RULE_HOURLY:
        return floor_div(seconds, HOUR_S);
    case ARCHIVE_RULE_DAILY:
        return day;
    case ARCHIVE_RULE_WEEKLY:
        return floor_div(day + 3, 7); /* the first of January 1970 was a Thursday */
    case ARCHIVE_RULE_MONTHLY:
        return month_of(day);
    default:
        return floor_div(month_of(day), 12);
    }
}

/* ---- the rules ---- */

static void mark(struct archive_retained *set, enum archive_rule rule)
{
    set->why |= 1u << rule;
}

static void keep_newest(struct archive_retained *sets, size_t n, uint64_t count)
{
    while (n-- > 0 && count > 0) {
        if (sets[n].damaged)
            continue;
        mark(&sets[n], ARCHIVE_RULE_COUNT);
        count--;
    }
}

static void keep_periods(struct archive_retained *sets, size_t n, enum archive_rule rule,
                         uint64_t count)
{
    bool any = false;
    int64_t last = 0;
    while (n-- > 0 && count > 0) {
        int64_t period = period_of(rule, sets[n].time_ms);
        if (sets[n].damaged || (any && period == last))
            continue;
        any = true;
        last = period;
        mark(&sets[n], rule);
        count--;
    }
}

static void keep_young(struct archive_retained *sets, size_t n, uint64_t age_ms, int64_t now_ms)
{
    int64_t newest = now_ms;
    for (size_t i = n; i-- > 0;) {
        if (!sets[i].damaged && sets[i].time_ms <= now_ms) {
            newest = sets[i].time_ms;
            break;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!sets[i].damaged && sets[i].time_ms >= newest - (int64_t)age_ms)
            mark(&sets[i], ARCHIVE_RULE_AGE);
}

static bool keep_last_good(struct archive_retained *sets, size_t n)
{
    while (n-- > 0) {
        if (!sets[n].damaged) {
            mark(&sets[n], ARCHIVE_RULE_LAST_GOOD);
            return true;
        }
    }
    return false;
}

void archive_retain(const struct archive_retention *rules, struct archive_retained *sets, size_t n,
                    int64_t now_ms)
{
    size_t n_past = 0;
    for (size_t i = 0; i < n; i++) {
        sets[i].why = 0;
        if (sets[i].pinned)
            mark(&sets[i], ARCHIVE_RULE_PIN);
        if (sets[i].unproved)
            mark(&sets[i], ARCHIVE_RULE_UNPROVED);
        if (sets[i].time_ms <= now_ms)
            n_past = i + 1;
        else if (!sets[i].damaged)
            mark(&sets[i], ARCHIVE_RULE_FUTURE);
    }
    size_t n_all = n;
    n = n_past;
    if (!keep_last_good(sets, n) || !archive_retention_given(rules)) {
        for (size_t i = 0; i < n_all; i++)
            mark(&sets[i], ARCHIVE_RULE_NO_RULE);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (sets[i].tagged && !sets[i].damaged)
            mark(&sets[i], ARCHIVE_RULE_TAG);
    keep_newest(sets, n, rules->n[ARCHIVE_RULE_COUNT]);
    for (unsigned rule = ARCHIVE_RULE_HOURLY; rule <= ARCHIVE_RULE_YEARLY; rule++)
        keep_periods(sets, n, (enum archive_rule)rule, rules->n[rule]);
    if (rules->n[ARCHIVE_RULE_AGE] != 0)
        keep_young(sets, n, rules->n[ARCHIVE_RULE_AGE], now_ms);
}
