/* team.h - a second thread that helps with work which is split by a counter.
 *
 *     static void work(void *arg, unsigned worker) { while (take the next piece) do it; }
 *     rd_team_run(team, work, arg);     // work(arg, 0) here, work(arg, 1) over there; both are
 * done
 *
 * The helper sleeps between runs. Where no thread can be had (or team is NULL), work(arg, 0) does
 * it all.
 */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include "base/api.h"
#include "base/slice.h"

enum { RD_TEAM_WORKERS = 2 };

struct rd_team;

/* NULL when there is one processor only, or no thread to be had. */
RD_API struct rd_team *rd_team_new(void);
RD_API void rd_team_run(struct rd_team *team, void (*work)(void *arg, unsigned worker), void *arg);
/* The same in two steps: between them work(arg, 1) is under way over there. The second takes part.
 */
RD_API void rd_team_start(struct rd_team *team, void (*work)(void *arg, unsigned worker),
                          void *arg);
RD_API void rd_team_join(struct rd_team *team);

RD_API void rd_team_free(struct rd_team *team);

#endif
