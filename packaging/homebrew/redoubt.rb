# Homebrew on Linux. `./run release` writes the checksum of the sources into a copy of this file.
class Redoubt < Formula
  desc "Persistence and replication tools for Redis and Valkey"
  homepage "https://redoubt.invalid/"
  url "https://redoubt.invalid/redoubt-0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "BSD-3-Clause"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "scdoc" => :build
  depends_on "curl"
  depends_on "expat"
  depends_on "inih"
  depends_on "jemalloc"
  depends_on "libmicrohttpd"
  depends_on "libuv"
  depends_on :linux
  depends_on "lua@5.1"
  depends_on "lz4"
  depends_on "openssl@3"
  depends_on "sqlite"
  depends_on "zlib"
  depends_on "zstd"

  def install
    system "meson", "setup", "build", "-Dtests=disabled", "-Ddocs=enabled", "-Dserver=enabled",
           "-Dsystemd=false", *std_meson_args
    system "meson", "compile", "-C", "build", "--verbose"
    system "meson", "install", "-C", "build"
    pkgshare.install "fixtures/redis-7.0.15/mixed.rdb"
  end

  test do
    system bin/"redoubt", "check-rdb", pkgshare/"mixed.rdb"
    (testpath/"bad.rdb").write "REDIS0011"
    shell_output("#{bin}/redoubt check-rdb #{testpath}/bad.rdb", 1)
  end
end
