#include "plan/not_run_yet.h"

namespace tessera::plan {

namespace {

const char* format_not_run(Format format) {
  switch (format) {
    case Format::fp32:
    case Format::bf16:
      return nullptr;
    case Format::fp16:
      return "fp16 products with loss scaling";
    case Format::fp8:
      return "fp8 products";
    case Format::fp4:
      return "fp4 products";
  }
  return nullptr;
}

}  // namespace

const char* optimizer_not_run(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adamw:
      return nullptr;
    case Optimizer::adam8bit:
      return "8-bit Adam";
    case Optimizer::muon:
      return "Muon";
    case Optimizer::sgd:
      return "SGD";
  }
  return nullptr;
}

std::vector<std::string> not_run_yet(const Case& run) {
  std::vector<std::string> parts = run.model.not_run_yet();
  if (run.layout.cp > 1) parts.emplace_back("context parallelism");
  if (run.layout.ep > 1) parts.emplace_back("expert parallelism");
  if (const char* format = format_not_run(run.recipe.format)) parts.emplace_back(format);
  if (const char* optimizer = optimizer_not_run(run.recipe.optimizer)) {
    parts.emplace_back(optimizer);
  }
  if (run.recipe.fine_tune == FineTune::qlora) parts.emplace_back("QLoRA");
  if (run.layout.zero == 3 && !run.layout.reshard_after_forward) {
    parts.emplace_back("ZeRO-3 with weights that stay gathered");
  }
  if (run.cluster.device.family != Family::host) parts.emplace_back("devices other than a CPU");
  return parts;
}

}  // namespace tessera::plan
