/* Pillow's resize of 8-bit RGB, bit for bit but of a crop alone, and its reduce. app/images/resize.py calls both.

Pillow 13 (src/libImaging/Resample.c) weights whole pixels with integers of 22 fractional bits and rounds to 8 bits,
first across and then down, or the other way round where the height shrinks by more than twice as many pixels as the
width. Here the same integers make the same sums, whose order does not matter. What is faster:

- only the lines and columns that the crop needs are computed;
- a pass always adds up whole lines, which compilers turn into vector instructions. The pass across turns the image for
  it, a few rows at a time, so that they stay in the cache.

Pixels have four bytes, of which the last means nothing. Compile with -fwrapv: sums may wrap on their way. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST, LANCZOS, BILINEAR, BICUBIC, BOX, HAMMING }; /* Pillow's numbers */
enum { DONE, REFUSED, NO_MEMORY };
enum { BITS = 22, TURNED = 32 /* rows */, LANES = 64 /* bytes */, MAX_SIDE = 1 << 22 /* pixels */, MAX_FACTOR = 256 };
static const double PI = 3.14159265358979323846;

#define INLINE static inline __attribute__((always_inline))

INLINE int smaller(int a, int b) { return a < b ? a : b; }

/* NULL where there is no memory, or no such number of bytes */
static void *room(size_t lines, size_t columns, size_t bytes) {
    return columns && lines > SIZE_MAX / columns / bytes ? NULL : malloc(lines * columns * bytes);
}

/* The Arrow C data interface: https://arrow.apache.org/docs/format/CDataInterface.html */
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

/* NULL unless these are just as many pixels of four bytes */
static const uint8_t *pixels_of(const struct ArrowArray *image, int columns, int rows) {
    if (columns < 1 || rows < 1 || columns > MAX_SIDE || rows > MAX_SIDE) return NULL;
    int64_t pixels = (int64_t)columns * rows;
    if (image->length != pixels || image->offset || image->n_children != 1) return NULL;
    const struct ArrowArray *bytes = image->children[0];
    return bytes->length == pixels * 4 && !bytes->offset && bytes->n_buffers == 2 ? bytes->buffers[1] : NULL;
}

/* How output lines are mixed: each of `count` input lines from `first` on, with weights in units of 2^-BITS */
typedef struct {
    int lines, *first, *count;
    size_t most; /* weights of a line */
    int32_t *weights;
} Mix;

static double filtered(int filter, double x) {
    if (filter == BOX) return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    if (filter == LANCZOS) {
        if (!(-3.0 <= x && x < 3.0)) return 0.0;
        if (x == 0.0) return 1.0;
        double a = x * PI, b = x / 3 * PI;
        return sin(a) / a * (sin(b) / b);
    }
    if (x < 0.0) x = -x;
    if (filter == BILINEAR) return x < 1.0 ? 1.0 - x : 0.0;
    if (filter == HAMMING) {
        if (x == 0.0) return 1.0;
        if (x >= 1.0) return 0.0;
        x = x * PI;
        return sin(x) / x * (0.54f + 0.46f * cos(x));
    }
    if (x < 1.0) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0.0;
}

/* Pillow's formulas in Pillow's order: of the output lines from `low` on */
static void fill(Mix *mix, double *exact, int in, double scale, int low, int filter) {
    double support = filter == BOX ? 0.5 : filter == BICUBIC ? 2.0 : filter == LANCZOS ? 3.0 : 1.0;
    double wide = scale < 1.0 ? 1.0 : scale, narrow = 1.0 / wide;
    support *= wide;
    for (int i = 0; i < mix->lines; i++) {
        int32_t *weights = mix->weights + i * mix->most;
        double center = (i + low + 0.5) * scale, sum = 0.0;
        int start = (int)(center - support + 0.5);
        if (start < 0) start = 0;
        int count = smaller((int)(center + support + 0.5), in) - start;
        for (int j = 0; j < count; j++) sum += exact[j] = filtered(filter, (j + start - center + 0.5) * narrow);
        for (int j = 0; j < count; j++) {
            double weight = (sum != 0.0 ? exact[j] / sum : exact[j]) * (1 << BITS);
            weights[j] = weight < 0 ? (int)(weight - 0.5) : (int)(weight + 0.5);
        }
        mix->first[i] = start;
        mix->count[i] = count;
    }
}

/* One line each, found as Pillow's affine transform finds it (src/libImaging/Geometry.c) */
static void fill_nearest(Mix *mix, int in, double scale, int low) {
    double at = scale * 0.5;
    for (int i = -low; i < mix->lines; i++, at += scale) {
        if (i < 0) continue;
        mix->first[i] = smaller((int)at, in - 1);
        mix->count[i] = 1;
        mix->weights[i * mix->most] = 1 << BITS;
    }
}

/* 0 where there is no memory */
static int mixed(Mix *mix, int in, int out, int low, int lines, int filter) {
    double scale = (double)in / out;
    *mix = (Mix){.lines = lines, .most = (size_t)ceil(3.0 * (scale < 1.0 ? 1.0 : scale)) * 2 + 1};
    mix->first = room(lines, 1, sizeof *mix->first);
    mix->count = room(lines, 1, sizeof *mix->count);
    mix->weights = room(lines, mix->most, sizeof *mix->weights);
    double *exact = room(mix->most, 1, sizeof *exact);
    int done = mix->first && mix->count && mix->weights && exact;
    if (done && filter == NEAREST) fill_nearest(mix, in, scale, low);
    else if (done) fill(mix, exact, in, scale, low, filter);
    free(exact);
    return done;
}

static void forget(Mix *mix) {
    free(mix->first);
    free(mix->count);
    free(mix->weights);
}

INLINE int first(const Mix *mix) { return mix->first[0]; }
INLINE int last(const Mix *mix) { return mix->first[mix->lines - 1] + mix->count[mix->lines - 1]; }

/* At most LANES bytes. Where `bytes` is LANES, compilers keep the sums in registers. */
INLINE void mix_bytes(const uint8_t *in, size_t stride, int bytes, int count, const int32_t *weights, uint8_t *out) {
    int32_t sums[LANES];
    for (int i = 0; i < bytes; i++) sums[i] = 1 << (BITS - 1);
    for (int line = 0; line < count; line++, in += stride)
        for (int i = 0; i < bytes; i++) sums[i] += in[i] * weights[line];
    for (int i = 0; i < bytes; i++) {
        int32_t sum = sums[i] >> BITS;
        out[i] = sum < 0 ? 0 : sum > 255 ? 255 : sum;
    }
}

/* A pass down. `in` is where line `from` begins. */
INLINE void down(const uint8_t *in, size_t stride, int from, const Mix *mix, size_t bytes, uint8_t *out) {
    for (int line = 0; line < mix->lines; line++, out += bytes) {
        const uint8_t *lines = in + (mix->first[line] - from) * stride;
        const int32_t *weights = mix->weights + line * mix->most;
        int count = mix->count[line];
        size_t at = 0;
        for (; at + LANES <= bytes; at += LANES) mix_bytes(lines + at, stride, LANES, count, weights, out + at);
        if (at < bytes) mix_bytes(lines + at, stride, (int)(bytes - at), count, weights, out + at);
    }
}

/* Rows to columns, two rows at a time, in parts that fit in the cache */
INLINE void turn(const uint32_t *in, size_t stride, int rows, int columns, uint32_t *out, size_t out_stride) {
    for (int left = 0; left < columns; left += LANES) {
        int right = smaller(left + LANES, columns), y = 0;
        for (; y + 1 < rows; y += 2)
            for (int x = left; x < right; x++) {
                uint32_t both[2] = {in[y * stride + x], in[(y + 1) * stride + x]};
                memcpy(out + x * out_stride + y, both, sizeof both);
            }
        if (y < rows)
            for (int x = left; x < right; x++) out[x * out_stride + y] = in[y * stride + x];
    }
}

/* A pass across. `in` is where column `from` begins. 0 where there is no memory. */
INLINE int across(const uint32_t *in, size_t stride, int from, int rows, const Mix *mix, uint32_t *out) {
    int left = first(mix), columns = last(mix) - left;
    uint32_t *turned = room(columns, TURNED, sizeof *turned), *done = room(mix->lines, TURNED, sizeof *done);
    for (int top = 0; turned && done && top < rows; top += TURNED) {
        int some = smaller(TURNED, rows - top);
        turn(in + top * stride + left - from, stride, some, columns, turned, some);
        down((const uint8_t *)turned, some * sizeof *turned, left, mix, some * sizeof *turned, (uint8_t *)done);
        turn(done, some, mix->lines, some, out + (size_t)top * mix->lines, mix->lines);
    }
    int enough = turned && done;
    free(turned);
    free(done);
    return enough;
}

/* To (rows, columns) of the mixes, from an image whose rows have `in_columns` */
INLINE int resize(const uint32_t *in, int in_columns, const Mix *x, const Mix *y, int down_first, uint32_t *out) {
    int left = first(x), top = first(y), columns = last(x) - left, rows = last(y) - top;
    uint32_t *between = down_first ? room(y->lines, columns, sizeof *between) : room(rows, x->lines, sizeof *between);
    int done = between != NULL;
    in += (size_t)top * in_columns;
    if (done && down_first) {
        down((const uint8_t *)(in + left), in_columns * sizeof *in, top, y, columns * sizeof *in, (uint8_t *)between);
        done = across(between, columns, left, y->lines, x, out);
    } else if (done && (done = across(in, in_columns, 0, rows, x, between))) {
        size_t bytes = x->lines * sizeof *between;
        down((const uint8_t *)between, bytes, top, y, bytes, (uint8_t *)out);
    }
    free(between);
    return done;
}

/* At most LANES bytes, as in `mix_bytes` */
INLINE void add_bytes(const uint8_t *in, size_t stride, int bytes, int count, uint16_t *out) {
    uint16_t sums[LANES] = {0};
    for (int line = 0; line < count; line++, in += stride)
        for (int i = 0; i < bytes; i++) sums[i] += in[i];
    memcpy(out, sums, bytes * sizeof *sums);
}

/* The bytes of one pixel of this sum over `all` pixels, rounded as in Pillow's Reduce.c */
INLINE void mean(const uint32_t *sum, int bytes, int all, uint8_t *out) {
    uint32_t multiplier = (uint32_t)(4294967296.0f / (uint32_t)(256 * all)), half = all / 2;
    for (int i = 0; i < bytes; i++) out[i] = (sum[i] + half) * multiplier >> 24;
}

/* Sums of `factor` columns each */
INLINE void add_columns(const uint16_t *in, int sums, int factor, uint32_t *out) {
    for (int i = 0; i < sums; i++, in += 4 * factor, out += 4) {
        uint32_t sum[4] = {0};
        for (int x = 0; x < factor; x++)
            for (int c = 0; c < 4; c++) sum[c] += in[4 * x + c];
        memcpy(out, sum, sizeof sum);
    }
}

/* Means of `factor` by `factor` pixels, of fewer at the right and at the bottom. Of each column and of each column of
the means, `down` and `all` have four numbers. */
INLINE void reduce(const uint8_t *in, int columns, int rows, int factor, uint16_t *down, uint32_t *all, uint8_t *out) {
    size_t bytes = (size_t)columns * 4;
    int whole = columns / factor, rest = columns % factor;
    for (int top = 0; top < rows; top += factor) {
        const uint8_t *lines = in + top * bytes;
        int count = smaller(factor, rows - top);
        size_t at = 0;
        for (; at + LANES <= bytes; at += LANES) add_bytes(lines + at, bytes, LANES, count, down + at);
        if (at < bytes) add_bytes(lines + at, bytes, (int)(bytes - at), count, down + at);
        if (factor == 2) add_columns(down, whole, 2, all); /* unrolled */
        else add_columns(down, whole, factor, all);
        mean(all, whole * 4, count * factor, out);
        out += whole * 4;
        if (!rest) continue;
        add_columns(down + 4 * whole * factor, 1, rest, all);
        mean(all, 4, count * rest, out);
        out += 4;
    }
}

/* Both for each kind of processor. Neither has sums of floats, which a fused multiply-add would round otherwise. */
typedef int Resize(const uint32_t *, int, const Mix *, const Mix *, int, uint32_t *);
typedef void Reduce(const uint8_t *, int, int, int, uint16_t *, uint32_t *, uint8_t *);
typedef struct {
    Resize *resize;
    Reduce *reduce;
} Kernels;
#define KERNELS(name, target)                                                                                         \
    target static int resize_##name(const uint32_t *in, int n, const Mix *x, const Mix *y, int d, uint32_t *out) {    \
        return resize(in, n, x, y, d, out);                                                                           \
    }                                                                                                                 \
    target static void reduce_##name(const uint8_t *in, int n, int m, int f, uint16_t *d, uint32_t *a, uint8_t *o) {  \
        reduce(in, n, m, f, d, a, o);                                                                                 \
    }                                                                                                                 \
    static const Kernels name = {resize_##name, reduce_##name};
KERNELS(any_processor, )
#if defined(__x86_64__) && defined(__GNUC__)
KERNELS(avx2, __attribute__((target("avx2"))))
KERNELS(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))
#endif

static Kernels kernels(void) {
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS __builtin_cpu_supports
    __builtin_cpu_init();
    if (HAS("avx512f") && HAS("avx512bw") && HAS("avx512dq") && HAS("avx512vl")) return avx512;
    if (HAS("avx2")) return avx2;
#endif
    return any_processor;
}

/* Of the image, resized to `width` by `height`, the `columns` and `rows` from (left, top) on: three bytes a pixel. */
int resized_crop(const struct ArrowArray *image, int in_columns, int in_rows, int width, int height, int left, int top,
                 int columns, int rows, int filter, uint8_t *out) {
    const uint32_t *in = (const uint32_t *)pixels_of(image, in_columns, in_rows);
    if (!in || width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) return REFUSED;
    if (left < 0 || top < 0 || columns < 1 || rows < 1) return REFUSED;
    if (left > width - columns || top > height - rows || filter < NEAREST || filter > HAMMING) return REFUSED;
    Mix x = {0}, y = {0};
    uint32_t *pixels = room(rows, columns, sizeof *pixels);
    int done = pixels && mixed(&x, in_columns, width, left, columns, filter);
    done = done && mixed(&y, in_rows, height, top, rows, filter);
    int down_first = in_rows > height && in_rows - height > 2 * (in_columns - width);
    done = done && kernels().resize(in, in_columns, &x, &y, down_first, pixels);
    for (size_t i = 0; done && i < (size_t)columns * rows; i++) memcpy(out + 3 * i, pixels + i, 3);
    free(pixels);
    forget(&x);
    forget(&y);
    return done ? DONE : NO_MEMORY;
}

/* Both sides divided by `factor` and rounded up: four bytes a pixel */
int reduced(const struct ArrowArray *image, int columns, int rows, int factor, uint8_t *out) {
    const uint8_t *in = pixels_of(image, columns, rows);
    if (!in || factor < 1 || factor > MAX_FACTOR) return REFUSED;
    uint16_t *down = room(columns, 4, sizeof *down);
    uint32_t *all = room(columns / factor + 1, 4, sizeof *all);
    int done = down && all;
    if (done) kernels().reduce(in, columns, rows, factor, down, all, out);
    free(down);
    free(all);
    return done ? DONE : NO_MEMORY;
}
