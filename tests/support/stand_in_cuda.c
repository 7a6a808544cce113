/* What tests/support/stand_in_cuda.py compiles: the functions of NVIDIA's libraries whose answer is more than a status.
   Memory of the GPU is memory of the process. Nothing is computed. */
#include <stdlib.h>
#include <string.h>

static void *const handle = (void *)8;

/* the driver */
int cuInit(int flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int gpu) { *context = handle; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuMemcpyDtoH_v2(void *to, void *from, size_t size) { memcpy(to, from, size); return 0; }
int cuMemHostRegister_v2(void *address, size_t size, int flags) { return 0; }

/* the device: one GPU of compute capability 9.0 */
int cudaGetDevice(int *gpu) { *gpu = 0; return 0; }
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaDeviceGetAttribute(int *value, int attribute, int gpu) { *value = 64; return 0; }
int cudaDriverGetVersion(int *version) { *version = 13000; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
int cudaMemGetInfo(size_t *available, size_t *all) { *available = *all = (size_t)1 << 36; return 0; }
int cudaGetDeviceProperties(char *properties, int gpu) {
  memset(properties, 0, 368);
  *(int *)(properties + 360) = 9; /* major; what else is read may be 0 */
  *(int *)(properties + 308) = 32; /* warpSize */
  *(int *)(properties + 320) = 1024; /* maxThreadsPerBlock */
  return 0;
}
const char *cudaGetErrorName(int error) { return "cudaSuccess"; }
const char *cudaGetErrorString(int error) { return "no error"; }
const char *cublasGetStatusName(int status) { return "CUBLAS_STATUS_SUCCESS"; }
const char *cublasGetStatusString(int status) { return "success"; }

/* memory */
int cudaMalloc(void **at, size_t size) { *at = calloc(1, size); return 0; }
int cudaMallocHost(void **at, size_t size) { return cudaMalloc(at, size); }
int cudaHostAlloc(void **at, size_t size, int flags) { return cudaMalloc(at, size); }
int cudaFree(void *at) { free(at); return 0; }
int cudaFreeHost(void *at) { free(at); return 0; }
int cudaMemcpy(void *to, const void *from, size_t size, int kind) { memcpy(to, from, size); return 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) { return cudaMemcpy(to, from, size, kind); }
int cudaMemset(void *at, int value, size_t size) { memset(at, value, size); return 0; }
int cudaMemsetAsync(void *at, int value, size_t size, void *stream) { return cudaMemset(at, value, size); }

/* handles */
int cudaStreamCreate(void **stream) { *stream = handle; return 0; }
int cudaStreamCreateWithFlags(void **stream, int flags) { *stream = handle; return 0; }
int cudaStreamIsCapturing(void *stream, int *capturing) { *capturing = 0; return 0; }
int cudaStreamEndCapture(void *stream, void **graph) { *graph = handle; return 0; }
int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags) { *executable = handle; return 0; }
int cudaEventCreate(void **event) { *event = handle; return 0; }
int cudaEventCreateWithFlags(void **event, int flags) { *event = handle; return 0; }
int cublasCreate_v2(void **made) { *made = handle; return 0; }
int cublasLtCreate(void **made) { *made = handle; return 0; }
int cublasGetMathMode(void *made, int *mode) { *mode = 0; return 0; }

/* cuDNN, which the provider opens when it is first asked for */
unsigned long cudnnGetVersion(void) { return 92800; }
unsigned long cudnnGetCudartVersion(void) { return 13000; }
int cudnnCreate(void **made) { *made = handle; return 0; }
int cudnnCreateTensorDescriptor(void **made) { *made = handle; return 0; }
int cudnnCreateReduceTensorDescriptor(void **made) { *made = handle; return 0; }
int cudnnGetReductionWorkspaceSize(void *made, void *reduction, void *from, void *to, size_t *size) { *size = 1024; return 0; }
