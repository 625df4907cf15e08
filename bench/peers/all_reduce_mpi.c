// MPI_Allreduce of fp32 in place: seconds a call, the median of many samples.
//
//   mpirun -n 2 all_reduce_mpi BYTES...      prints "BYTES SECONDS" a line

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  enum { kSamples = 21, kMostCalls = 2000, kBytesASample = 8 << 20 };
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    const long bytes = atol(argv[i]);
    long calls = kBytesASample / bytes;
    calls = calls < 1 ? 1 : calls > kMostCalls ? kMostCalls : calls;
    float* values = calloc((size_t)bytes / sizeof(float), sizeof(float));
    double seconds[kSamples];
    for (int sample = -1; sample < kSamples; ++sample) {  // one that is not counted
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (long call = 0; call < calls; ++call) {
        MPI_Allreduce(MPI_IN_PLACE, values, (int)(bytes / (long)sizeof(float)), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      }
      if (sample >= 0) seconds[sample] = (MPI_Wtime() - begin) / (double)calls;
    }
    free(values);
    qsort(seconds, kSamples, sizeof(double), compare);
    if (rank == 0) printf("%ld %.9g\n", bytes, seconds[kSamples / 2]);
  }
  MPI_Finalize();
  return 0;
}
