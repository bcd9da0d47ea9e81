/* INCREX of Redis 8.8 and Valkey 9.2: adds to a number within bounds, and sets the expiry of its
 * key. Its effect is a SET, which every server knows. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/string_impl.h"
#include "engine/human.h"

#include <float.h>
#include <math.h>

enum {
    EX = 1,
    PX = 2,
    EXAT = 4,
    PXAT = 8,
    PERSIST = 16,
    ENX = 32,
    BYINT = 64,
    BYFLOAT = 128,
    LBOUND = 256,
    UBOUND = 512,
    SATURATE = 1024,
    NX = 2048,
    XX = 4096,
    TIME = EX | PX | EXAT | PXAT,
    WITH_VALUE = TIME | BYINT | BYFLOAT | LBOUND | UBOUND
};

static const struct option {
    const char *word;
    int bit;
    int excludes;
} options[] = {
    {"EX", EX, TIME | PERSIST},
    {"PX", PX, TIME | PERSIST},
    {"EXAT", EXAT, TIME | PERSIST},
    {"PXAT", PXAT, TIME | PERSIST},
    {"PERSIST", PERSIST, TIME},
    {"ENX", ENX, 0},
    {"BYINT", BYINT, BYFLOAT},
    {"BYFLOAT", BYFLOAT, BYINT},
    {"LBOUND", LBOUND, 0},
    {"UBOUND", UBOUND, 0},
    {"SATURATE", SATURATE, 0},
    {"NX", NX, XX},
    {"XX", XX, NX},
};

/* A number in one of the two modes. */
union number {
    int64_t whole;
    long double real;
};

struct job {
    int bits;
    struct rd_slice time, by, lower, upper;
    union number more, min, max;
    int64_t expire_ms;
};

/* ---- arguments ---- */

static const struct option *find_option(struct rd_slice arg)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (engine_arg_is(arg, options[i].word))
            return &options[i];
    return NULL;
}

static struct rd_slice *value_of(struct job *job, int bit)
{
    return (bit & TIME) != 0                ? &job->time
           : (bit & (BYINT | BYFLOAT)) != 0 ? &job->by
           : bit == LBOUND                  ? &job->lower
                                            : &job->upper;
}

static bool parse_words(struct engine_call *call, struct job *job)
{
    for (size_t i = 2; i < call->argc; i++) {
        const struct option *option = find_option(call->argv[i]);
        bool with_value = option != NULL && (option->bit & WITH_VALUE) != 0;
        if (option == NULL || (job->bits & (option->bit | option->excludes)) != 0 ||
            (with_value && i + 1 == call->argc)) {
            engine_reply_syntax(call);
            return false;
        }
        job->bits |= option->bit;
        if (with_value)
            *value_of(job, option->bit) = call->argv[++i];
    }
    if ((job->bits & ENX) == 0 || (job->bits & TIME) != 0)
        return true;
    engine_reply_syntax(call);
    return false;
}

static bool arg_number(struct engine_call *call, const struct job *job, struct rd_slice arg,
                       union number *ret)
{
    if ((job->bits & BYFLOAT) == 0)
        return engine_arg_i64(call, arg, &ret->whole, NULL);
    if (engine_human_get(arg, &ret->real) && isfinite(ret->real))
        return true;
    engine_reply_error(call->reply, "ERR value is not a valid float");
    return false;
}

static bool parse_numbers(struct engine_call *call, struct job *job)
{
    bool real = (job->bits & BYFLOAT) != 0;
    if (real) {
        job->min.real = -LDBL_MAX;
        job->max.real = LDBL_MAX;
    } else {
        job->more.whole = 1;
        job->min.whole = INT64_MIN;
        job->max.whole = INT64_MAX;
    }
    if (((job->bits & (BYINT | BYFLOAT)) != 0 && !arg_number(call, job, job->by, &job->more)) ||
        ((job->bits & LBOUND) != 0 && !arg_number(call, job, job->lower, &job->min)) ||
        ((job->bits & UBOUND) != 0 && !arg_number(call, job, job->upper, &job->max)))
        return false;
    if (real ? job->min.real <= job->max.real : job->min.whole <= job->max.whole)
        return true;
    engine_reply_error(call->reply, "ERR LBOUND is greater than UBOUND");
    return false;
}

static bool parse(struct engine_call *call, struct job *ret)
{
    *ret = (struct job){.expire_ms = ENGINE_NO_EXPIRE};
    if (!parse_words(call, ret) || !parse_numbers(call, ret))
        return false;
    return (ret->bits & TIME) == 0 ||
           engine_string_arg_expiry(call, ret->time, (ret->bits & (EX | EXAT)) != 0,
                                    (ret->bits & (EX | PX)) != 0, &ret->expire_ms);
}

/* ---- the sum ---- */

/* An error that the server had, too. */
static bool fail(struct engine_call *call, const char *text)
{
    engine_reply_by_data(call->reply);
    engine_reply_error(call->reply, text);
    return false;
}

/* *ret: the number of the key. */
static bool get_number(struct engine_call *call, const struct job *job,
                       const struct engine_entry *entry, union number *ret)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice text = rd_slice_str("0");
    if (entry != NULL)
        text = engine_string_text(&entry->value, digits);
    if (arg_number(call, job, text, ret))
        return true;
    engine_reply_by_data(call->reply);
    return false;
}

/* *ret: the result within its bounds; *ret_in: it needed no bound. */
static bool add_whole(struct engine_call *call, const struct job *job, int64_t old, int64_t *ret,
                      bool *ret_in)
{
    int64_t sum, step;
    bool over = __builtin_add_overflow(old, job->more.whole, &sum);
    bool high = over ? job->more.whole > 0 : sum > job->max.whole;
    bool low = over ? job->more.whole < 0 : sum < job->min.whole;
    *ret_in = !high && !low;
    *ret = high ? job->max.whole : low ? job->min.whole : sum;
    return *ret_in || (job->bits & SATURATE) == 0 || !__builtin_sub_overflow(*ret, old, &step) ||
           fail(call, "ERR increment would overflow");
}

static bool add_real(struct engine_call *call, const struct job *job, long double old,
                     long double *ret, bool *ret_in)
{
    long double sum = old + job->more.real;
    bool high = sum > job->max.real, low = sum < job->min.real;
    *ret_in = !high && !low;
    *ret = high ? job->max.real : low ? job->min.real : sum;
    return *ret_in || (job->bits & SATURATE) == 0 || isfinite(*ret - old) ||
           fail(call, "ERR increment would produce NaN or Infinity");
}

/* ---- the key ---- */

static void reply_number(struct engine_call *call, const struct job *job, union number n)
{
    char digits[ENGINE_HUMAN_MAX];
    if ((job->bits & BYFLOAT) == 0)
        engine_reply_int(call->reply, n.whole);
    else
        engine_reply_bulk(call->reply, rd_slice(digits, engine_human_put(digits, n.real)));
}

static void reply(struct engine_call *call, const struct job *job, union number now,
                  union number step)
{
    engine_reply_array(call->reply, 2);
    reply_number(call, job, now);
    reply_number(call, job, step);
}

static void change_expiry(struct engine_call *call, const struct job *job,
                          struct engine_entry *entry)
{
    bool stays = (job->bits & ENX) != 0 && entry->expire_ms != ENGINE_NO_EXPIRE;
    if ((job->bits & (TIME | PERSIST)) == 0 || stays || entry->expire_ms == job->expire_ms)
        return;
    engine_call_expire(call, entry, job->expire_ms);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, (job->bits & TIME) != 0 ? "expire" : "persist",
                  call->argv[1]);
}

static void say_effect(struct engine_call *call, const struct engine_entry *entry,
                       struct rd_slice text)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice argv[5] = {rd_slice_str("SET"), call->argv[1], text};
    if (!engine_effects_wanted(call))
        return;
    if (entry->expire_ms != ENGINE_NO_EXPIRE) {
        argv[3] = rd_slice_str("PXAT");
        argv[4] = rd_slice(digits, rd_num_put_i64(digits, entry->expire_ms));
    }
    engine_effect(call, entry->expire_ms != ENGINE_NO_EXPIRE ? 5 : 3, argv);
}

static void store(struct engine_call *call, const struct job *job, struct engine_entry *entry,
                  union number now)
{
    bool real = (job->bits & BYFLOAT) != 0;
    char digits[ENGINE_HUMAN_MAX];
    struct rd_slice key = call->argv[1];
    size_t len = real ? engine_human_put(digits, now.real) : rd_num_put_i64(digits, now.whole);
    entry = engine_call_set_string(call, entry, key, rd_slice(digits, len));
    change_expiry(call, job, entry);
    say_effect(call, entry, rd_slice(digits, len));
    engine_changed(call, ENGINE_NOTIFY_STRING, real ? "incrbyfloat" : "incrby", key, 1);
}

static void run(struct engine_call *call, const struct job *job, struct engine_entry *entry)
{
    union number old, now, step = {.whole = 0};
    bool real = (job->bits & BYFLOAT) != 0, in;
    if (!get_number(call, job, entry, &old))
        return;
    if (real ? !add_real(call, job, old.real, &now.real, &in)
             : !add_whole(call, job, old.whole, &now.whole, &in))
        return;
    bool done = in || (job->bits & SATURATE) != 0;
    if (!done)
        now = old;
    else
        store(call, job, entry, now);
    if (real)
        step.real = now.real - old.real;
    else
        step.whole = now.whole - old.whole;
    reply(call, job, now, step);
}

void engine_cmd_increx(struct engine_call *call)
{
    struct job job;
    struct engine_entry *entry;
    if (!parse(call, &job) || !engine_call_write(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    if ((job.bits & (entry != NULL ? NX : XX)) != 0)
        engine_reply_null_array(call->reply);
    else
        run(call, &job, entry);
}
