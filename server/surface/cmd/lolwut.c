/* LOLWUT: a drawing, and the version. The drawing is the ground plan of a fort with a random number
 * of bastions. */
#include "server/surface/cmd/commands.h"

#include <math.h>

enum { WIDTH = 61, HEIGHT = 27, BASTIONS_MIN = 4, BASTIONS_KINDS = 5 };

/* The distance of the wall from the center in this direction: a star whose points are bastions. */
static double wall_at(double angle, int n_bastions)
{
    const double pi = acos(-1.0);
    double turn = fmod(angle * n_bastions / (2 * pi) + n_bastions, 1.0);
    double from_point = fabs(turn - 0.5) * 2; /* 1 at the point of a bastion, 0 between two */
    return 0.55 + 0.4 * pow(from_point, 1.6);
}

static char plan_at(int row, int column, int n_bastions)
{
    const double half_width = (double)WIDTH / 2, half_height = (double)HEIGHT / 2;
    double x = (column - WIDTH / 2) / half_width, y = (row - HEIGHT / 2) / half_height;
    double r = sqrt(x * x + y * y), wall = wall_at(atan2(x, -y), n_bastions);
    if (r > wall + 0.07)
        return ' ';
    if (r > wall)
        return '~'; /* the moat */
    if (r > wall - 0.08)
        return '#';
    if (r < 0.16)
        return r < 0.08 ? '@' : 'H'; /* the building in the middle */
    return r < 0.30 ? ' ' : '.';
}

static void draw(struct rd_buf *out, int n_bastions)
{
    for (int row = 0; row < HEIGHT; row++) {
        char line[WIDTH];
        size_t len = 0;
        for (int column = 0; column < WIDTH; column++) {
            line[column] = plan_at(row, column, n_bastions);
            if (line[column] != ' ')
                len = (size_t)column + 1;
        }
        rd_buf_add(out, line, len);
        rd_buf_add_byte(out, '\n');
    }
}

void server_cmd_lolwut(struct dispatch_call *call)
{
    /* The versions 5 and 6 of Redis take numbers, for drawings of their own. */
    int64_t version = 0, number;
    if (call->argc >= 3 && dispatch_arg_is(call->argv[1], "version") &&
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &version, NULL))
        return;
    size_t n_numbers = version == 5 ? 3 : version == 6 ? 2 : 0;
    for (size_t i = 3; i < call->argc && i < 3 + n_numbers; i++)
        if (!dispatch_arg_i64(call, call->argv[i], INT64_MIN, INT64_MAX, &number, NULL))
            return;
    struct rd_buf text = {0};
    draw(&text, BASTIONS_MIN + (int)(call->sessions->loop->mono_us % BASTIONS_KINDS));
    rd_buf_printf(&text, "\nRedis ver. %s\n", SERVER_REDIS_VERSION);
    engine_reply_verbatim(call->reply, rd_buf_slice(&text), "txt");
    rd_buf_done(&text);
}
