#include "plan/constants.h"

#include "core/error.h"
#include "plan/constants_fit.h"
#include "plan/stack.h"

namespace tessera::plan {

std::vector<ConstantField> fields(Constants& constants) {
  std::vector<ConstantField> all;
  const auto add = [&](std::string name, double& value, double low, double high) {
    all.push_back({std::move(name), &value, low, high});
  };
  for (size_t i = 0; i < kNumFamilies; ++i) {
    FamilyConstants& family = constants.family[i];
    const std::string prefix = std::string(name_of(static_cast<Family>(i))) + '.';
    add(prefix + "products", family.products, 0.4, 0.98);
    add(prefix + "fp8_products", family.fp8_products, 0.3, 0.98);
    add(prefix + "attention", family.attention, 0.2, 0.9);
    add(prefix + "memory", family.memory, 0.5, 0.95);
    add(prefix + "intra", family.intra, 0.4, 0.95);
    add(prefix + "inter", family.inter, 0.4, 0.95);
    add(prefix + "half_depth", family.half_depth, 0, 800);
    add(prefix + "wave_loss", family.wave_loss, 0, 1);
  }
  for (size_t i = 0; i < constants.stack_efficiency.size(); ++i) {
    add("stack." + stacks()[i].name, constants.stack_efficiency[i], 0.6, 1.2);
  }
  add("misaligned", constants.misaligned, 0, 1);
  add("odd_head", constants.odd_head, 0, 3);
  add("collective_s", constants.collective_s, 2e-6, 100e-6);
  add("inter_collective_s", constants.inter_collective_s, 2e-6, 300e-6);
  add("launch_s", constants.launch_s, 1e-6, 20e-6);
  add("hop_s", constants.hop_s, 0, 30e-6);
  add("host_s", constants.host_s, 2e-6, 80e-6);
  add("checkpoint_s", constants.checkpoint_s, 0, 20e-3);
  add("first_fused", constants.first_fused, 0.3, 1);
  add("step_s", constants.step_s, 0, 1);
  add("straggler", constants.straggler, 0, 0.05);
  add("dp_overlap", constants.dp_overlap, 0, 1);
  add("gather_overlap", constants.gather_overlap, 0.3, 1);
  add("tp_overlap", constants.tp_overlap, 0, 1);
  add("cp_overlap", constants.cp_overlap, 0, 1);
  return all;
}

Constants prior_constants() {
  Constants constants;
  constants.stack_efficiency.assign(stacks().size(), 1.0);
  return constants;
}

bool set_constant(Constants& constants, std::string_view name, double value) {
  for (const ConstantField& field : fields(constants)) {
    if (field.name != name) continue;
    *field.value = value;
    return true;
  }
  return false;
}

const Constants& default_constants() {
  static const Constants fit = [] {
    Constants constants = prior_constants();
    for (const FittedConstant& fitted : fitted_constants()) {
      CHECK(set_constant(constants, fitted.name, fitted.value), "a fitted constant that is none");
    }
    return constants;
  }();
  return fit;
}

}  // namespace tessera::plan
