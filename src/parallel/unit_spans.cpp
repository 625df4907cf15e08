#include "parallel/unit_spans.h"

namespace tessera::parallel {

UnitSpans::UnitSpans(const account::ParameterTable& table) {
  for (const account::Unit& unit : table.units) names_.push_back(unit.name);
}

void UnitSpans::before_forward(int unit) {
  if (recorder_ == nullptr || open_ != -1) return;  // a tied embedding opens inside the head
  open_ = unit;
  begin_ns_ = trace::now_ns();
}

void UnitSpans::after_forward(int unit) {
  if (recorder_ == nullptr || open_ != unit) return;
  open_ = -1;
  trace::Span span;
  span.name = names_[static_cast<size_t>(unit)];
  span.begin_ns = begin_ns_;
  span.end_ns = trace::now_ns();
  span.details.unit = span.name;
  recorder_->add(std::move(span));
}

}  // namespace tessera::parallel
