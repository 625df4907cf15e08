#include "account/traffic.h"

namespace tessera::account {

int64_t bytes_sent(const Message& message, int64_t num_ranks, int64_t rank) {
  const int64_t peers = num_ranks - 1;
  if (peers <= 0) return 0;
  const int64_t elements = message.elements;
  int64_t sent = 0;
  switch (message.collective) {
    case Collective::all_reduce: {
      const int64_t own = elements / num_ranks + (rank < elements % num_ranks ? 1 : 0);
      sent = (elements - own) + peers * own;
      break;
    }
    // Divides by contract: every rank keeps one part and sends the others.
    case Collective::reduce_scatter:
      sent = elements / num_ranks * peers;
      break;
    case Collective::all_gather:
      sent = elements * peers;
      break;
    case Collective::broadcast:
      sent = rank == 0 ? elements * peers : 0;
      break;
  }
  return sent * message.element_bytes;
}

void StepTraffic::add(const Message& message, int64_t num_ranks, int64_t rank) {
  int64_t* const of[] = {&all_reduce, &reduce_scatter, &all_gather, &broadcast};
  *of[static_cast<int>(message.collective)] += bytes_sent(message, num_ranks, rank);
}

std::vector<StepMessage> step_messages(const ParameterTable& table, const StepShape& shape,
                                       int64_t rank) {
  const int64_t stage = shape.sharding.stage;
  const int64_t shards = shape.sharding.shards;
  const int64_t replicas = shape.sharding.replicas;
  const int64_t shard_rank = rank % shards;
  const int64_t replica = rank / shards;
  std::vector<StepMessage> messages;
  const auto gather = [&](int64_t elements, Purpose purpose) {
    messages.push_back(
        {{Collective::all_gather, padded(elements, shards) / shards, shape.weight_bytes},
         shards,
         shard_rank,
         purpose});
  };
  if (stage == 0) {
    for (const Bucket& bucket : gradient_buckets(table, shape.gradient_bytes, shape.bucket_bytes)) {
      int64_t elements = 0;
      for (int i = 0; i < bucket.count; ++i) {
        elements += table.units[static_cast<size_t>(bucket.first + i)].trainable_elements();
      }
      messages.push_back(
          {{Collective::all_reduce, elements, shape.gradient_bytes}, replicas, replica});
    }
    return messages;
  }
  const UnitPlan plan = unit_plan(table, shape.passes, /*training=*/true);
  for (size_t u = 0; u < table.units.size(); ++u) {
    const Unit& unit = table.units[u];
    const int64_t trained = padded(unit.trainable_elements(), shards);
    for (int64_t i = 0; i < (stage == 1 ? 1 : plan.contributions[u]); ++i) {
      messages.push_back(
          {{Collective::reduce_scatter, trained, shape.gradient_bytes}, shards, shard_rank});
    }
    messages.push_back(
        {{Collective::all_reduce, trained / shards, shape.gradient_bytes}, replicas, replica});
    if (stage < 3) gather(trained, Purpose::new_weights);
  }
  if (stage < 3) return messages;
  for (const UnitUse& use : plan.uses) {
    const Unit& unit = table.units[static_cast<size_t>(use.unit)];
    gather(unit.frozen_elements(), Purpose::weights);
    gather(unit.trainable_elements(), Purpose::weights);
  }
  return messages;
}

StepTraffic step_traffic(const ParameterTable& table, const StepShape& shape, int64_t rank) {
  StepTraffic traffic;
  for (const StepMessage& each : step_messages(table, shape, rank)) {
    traffic.add(each.message, each.ranks, each.rank);
  }
  return traffic;
}

}  // namespace tessera::account
