#include "spec/mesh.h"

namespace tessera::spec {

Mesh mesh_of(const ParallelismConfig& parallelism) {
  return {parallelism.pipeline_parallel_degree, parallelism.data_parallel_degree, 1,
          parallelism.tensor_parallel_degree};
}

}  // namespace tessera::spec
