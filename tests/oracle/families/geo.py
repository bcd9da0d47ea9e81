"""Geo commands: places around a few towns, at the edges of what there is, and scores that are no
places at all; searches of all sizes, from a meter to more than the earth."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 2
CONFIGS = [
    {"zset-max-listpack-entries": 0},
    {"zset-max-listpack-value": 3},
    {"zset-max-listpack-entries": 1000, "zset-max-listpack-value": 1000},
]

KEYS = ["g1", "g2", "world", "town", "poles"]
OTHERS = ["str", "set", "missing", ""]
NAMES = ["Palermo", "Catania", "a", "b", "c", "1", "-7", "12345", "", "\x00\xff", "n" * 64,
         "n" * 65]
TOWNS = [(13.361389, 38.115556), (15.087269, 37.502669), (0, 0), (-122.27652, 37.805186),
         (179.99, 10), (-179.99, -10), (25.5, 84.9), (-60, -84.5), (12, 66.5), (12, -80.5),
         (0, 45)]
EDGES = ["180", "-180", "179.99999999", "-179.99999999", "0", "-0", "1e-10", "90", "-90"]
LAT_EDGES = ["85.05112878", "-85.05112878", "85.05112", "-85.05", "0", "-0", "66", "-66", "80.1"]
BAD = ["", "x", "nan", "inf", "-inf", " 1", "180.0001", "-181", "1e300", "0x", "1 "]
BAD_LAT = ["", "x", "nan", "85.06", "-90", "1e5", "inf"]
UNITS = ["m", "km", "ft", "mi", "KM", "Mi"]
BAD_UNITS = ["", "x", "miles", "meter"]
RADII = ["0", "1", "10", "100", "200", "500.5", "1000", "5000", "10000", "20000", "50000", "1e6",
         "1e7", "2e7", "1e9", "0.001", "1e-300", "inf", "0x10", "166274", "1e308"]
BAD_RADII = ["", "x", "-1", "nan", "-0.1", "1e999", " 1"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, good, bad, share=0.03):
        return self.rng.choice(bad if self.rng.random() < share else good)

    def key(self):
        return self.pick(KEYS, OTHERS, 0.05)

    def member(self):
        return self.rng.choice(NAMES) if self.rng.random() < 0.5 else f"p{self.rng.randrange(150)}"

    def place(self):
        rng = self.rng
        p = rng.random()
        if p < 0.4:
            lon, lat = rng.choice(TOWNS)
            spread = rng.choice([0, 0, 1e-6, 1e-4, 0.01, 1])
            lon = max(-180, min(180, lon + rng.uniform(-1, 1) * spread))
            lat = max(-85.05, min(85.05, lat + rng.uniform(-1, 1) * spread))
            return [repr(float(lon)), repr(float(lat))]
        if p < 0.7:
            return [repr(rng.uniform(-180, 180)), repr(rng.uniform(-85, 85))]
        if p < 0.85:
            return [rng.randrange(-18, 19) * 10, rng.randrange(-8, 9) * 10]
        return [self.pick(EDGES, BAD, 0.15), self.pick(LAT_EDGES, BAD_LAT, 0.15)]

    def options(self, words, most=3):
        return self.rng.sample(words, self.rng.randrange(min(len(words), most) + 1))

    def radius(self):
        good = self.rng.choice(RADII) if self.rng.random() < 0.5 else \
            repr(10 ** self.rng.uniform(-1, 7.5))
        return [self.pick([good], BAD_RADII), self.pick(UNITS, BAD_UNITS)]

    def box(self):
        return [self.radius()[0], *self.radius()]

    def count(self):
        rng = self.rng
        n = self.pick([1, 1, 2, 3, 5, 7, 10, 20, 45, 100, 9223372036854775807],
                      [0, -1, "x", "", "1.5"])
        return [rng.choice(["COUNT", "count"]), n, *(["ANY"] if rng.random() < 0.3 else [])]

    def tail(self, store):
        """Options of a search."""
        rng = self.rng
        parts = []
        if rng.random() < 0.5:
            parts.append(self.count())
        if rng.random() < 0.5:
            parts.append([rng.choice(["ASC", "DESC", "asc"])])
        with_words = 0.03 if store else 0.5
        for word in ["WITHDIST", "WITHHASH", "WITHCOORD"]:
            if rng.random() < with_words:
                parts.append([word])
        if rng.random() < 0.02:
            parts.append(rng.choice([["x"], ["COUNT"], ["ANY"], ["STOREDIST"], ["STORE"]]))
        return parts

    def geoadd(self, n=None):
        rng = self.rng
        n = n or rng.choice([1, 1, 2, 3, 5, 10, 30])
        argv = ["GEOADD", self.key(), *self.options(["NX", "XX", "CH"], 2)]
        if rng.random() < 0.5:
            argv = argv[:2]
        for _ in range(n):
            argv += [*self.place(), self.member()]
        if rng.random() < 0.02:
            argv += rng.choice([["1"], ["GT", 1, 2, "a"]])
        return argv

    def radius_search(self):
        rng = self.rng
        read_only = rng.random() < 0.3
        argv = ["GEORADIUS" + ("_RO" if read_only else ""), self.key(), *self.place(),
                *self.radius()]
        return argv + self.radius_tail(read_only)

    def radius_by_member(self):
        rng = self.rng
        read_only = rng.random() < 0.3
        argv = ["GEORADIUSBYMEMBER" + ("_RO" if read_only else ""), self.key(), self.member(),
                *self.radius()]
        return argv + self.radius_tail(read_only)

    def radius_tail(self, read_only):
        rng = self.rng
        stores = rng.random() < (0.02 if read_only else 0.3)
        parts = self.tail(stores)
        if stores:
            parts.append([rng.choice(["STORE", "STOREDIST", "store"]), self.key()])
            if rng.random() < 0.1:
                parts.append([rng.choice(["STORE", "STOREDIST"]), self.key()])
        rng.shuffle(parts)
        return [word for part in parts for word in part]

    def search(self):
        rng = self.rng
        stores = rng.random() < 0.3
        parts = self.tail(stores)
        if stores and rng.random() < 0.4:
            parts.append(["STOREDIST"])
        parts.append(["FROMMEMBER", self.member()] if rng.random() < 0.4 else
                     ["FROMLONLAT", *self.place()])
        parts.append(["BYRADIUS", *self.radius()] if rng.random() < 0.5 else
                     ["BYBOX", *self.box()])
        if rng.random() < 0.03:
            parts.append(rng.choice([["FROMMEMBER", self.member()], ["BYBOX", 1, 2], ["BYRADIUS"],
                                     ["FROMLONLAT", 1, 1], ["BYBOX", 1, 1, "km"]]))
        if rng.random() < 0.03:
            parts.pop(rng.randrange(len(parts)))
        rng.shuffle(parts)
        head = ["GEOSEARCHSTORE", self.key(), self.key()] if stores else ["GEOSEARCH", self.key()]
        return head + [word for part in parts for word in part]


def other(m):
    rng = m.rng
    return rng.choice([
        lambda: ["ZADD", m.key(), rng.choice(["inf", "-inf", -1, "1e300", "-1e300", "1e17", "1.5",
                                              "18446744073709551615", "9223372036854775807", 0,
                                              4503599627370496, 9007199254740991]), m.member()],
        lambda: ["ZADD", m.key(), rng.randrange(1 << 54), m.member()],
        lambda: ["ZREM", m.key(), m.member(), m.member()],
        lambda: ["ZRANGE", m.key(), 0, -1, "WITHSCORES"],
        lambda: ["DEL", rng.choice(KEYS + OTHERS)],
        lambda: ["SET", rng.choice(["str", "g1"]), "x"],
        lambda: ["SADD", "set", "a"],
        lambda: ["PEXPIRE", m.key(), rng.choice([1, 1000, 100000])],
        lambda: ["OBJECT", "ENCODING", m.key()],
    ])()


def one(m):
    rng = m.rng
    p = rng.random()
    if p < 0.08:
        return other(m)
    argv = rng.choice([
        m.geoadd, m.geoadd,
        lambda: ["GEODIST", m.key(), m.member(), m.member(),
                 *([m.pick(UNITS, BAD_UNITS)] if rng.random() < 0.7 else []),
                 *(["x"] if rng.random() < 0.02 else [])],
        lambda: ["GEOHASH", m.key(), *[m.member() for _ in range(rng.randrange(4))]],
        lambda: ["GEOPOS", m.key(), *[m.member() for _ in range(rng.randrange(4))]],
        m.radius_search, m.radius_search, m.radius_by_member, m.search, m.search, m.search,
    ])()
    return argv[:-1] if rng.random() < 0.02 else argv


def commands(rng):
    m = Maker(rng)
    while True:
        p = rng.random()
        if p < 0.01:
            yield m.geoadd(60)
        elif p < 0.03:
            lon, lat = rng.choice(TOWNS)
            yield ["GEOADD", "town", *[x for _ in range(rng.randrange(1, 40)) for x in
                                       (rng.choice([lon, lon, lon + 0.1 if lon < 179 else lon]),
                                        lat, f"p{rng.randrange(150)}")]]
        else:
            yield one(m)
