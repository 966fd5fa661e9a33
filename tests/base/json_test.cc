#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace frontier {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
    const auto parsed = parse_json(text, "x.json");
    if (parsed) return "accepted: " + dump_json(*parsed);
    EXPECT_EQ(parsed.error().code, ErrorCode::kBadInput);
    EXPECT_TRUE(parsed.error().text.starts_with("x.json: ")) << parsed.error().text;
    EXPECT_EQ(parsed.error().text.find('\n'), std::string::npos) << parsed.error().text;
    return parsed.error().text;
}

TEST(ParseJson, KeepsTheOrderOfFields) {
    const auto parsed = parse_json(R"({"z":1,"a":[true,null,-2.5],"m":{"\u00e9":"x"}})", "x.json");
    ASSERT_TRUE(parsed) << parsed.error().text;
    EXPECT_EQ(dump_json(*parsed), "{\"z\":1,\"a\":[true,null,-2.5],\"m\":{\"\xC3\xA9\":\"x\"}}");
}

TEST(ParseJson, RefusesWhatIsNotJson) {
    for (const std::string_view text :
         {"",       " ",          "{",           "[1,]",        "{\"a\":1,}", "{'a':1}", "{a:1}", "[1] 2", "nul",
          "NaN",    "[Infinity]", "[-Infinity]", "01",          "+1",         ".5",      "1.",    "0x10",  "\"\t\"",
          "\"\n\"", "\"\\x\"",    "// c\n1",     "[1] /* c */", "\"open",     "]",       "[}"})
        EXPECT_THAT(error_of(text), HasSubstr("invalid JSON: ")) << text;
}

TEST(ParseJson, RefusesInvalidUtf8) {
    for (const std::string_view text :
         {"\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xE2\x82\"", "\"\x80\"",
          "{\"\xFF\":1}", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\ud800\""})
        EXPECT_THAT(error_of(text), HasSubstr("invalid JSON: ")) << text;
    EXPECT_TRUE(parse_json("\"\\ud83d\\ude00 \xF0\x9F\x98\x80 \\u0000\"", "x.json"));
    EXPECT_TRUE(parse_json("\xEF\xBB\xBF{}", "x.json"));  // a byte order mark, as some editors write
}

TEST(ParseJson, NestingIsBounded) {
    const auto nested = [](int depth) {
        return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
    };
    EXPECT_TRUE(parse_json(nested(kMaxJsonDepth), "x.json"));
    EXPECT_THAT(error_of(nested(kMaxJsonDepth + 1)), HasSubstr("nested deeper than 200 levels"));
    EXPECT_THAT(error_of(std::string(10'000'000, '[')), HasSubstr("nested deeper than 200 levels"));
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    EXPECT_THAT(error_of(objects), HasSubstr("nested deeper than 200 levels"));
    // Brackets in strings do not count, escaped quotes do not end them.
    const std::string brackets = fmt::format(R"("{}\"{}")", std::string(1000, '['), std::string(1000, '{'));
    EXPECT_TRUE(parse_json(brackets, "x.json"));
    EXPECT_FALSE(parse_json(nested(3), "x.json", 2));
    // Siblings are not nested.
    std::string siblings = "[";
    for (int i = 0; i < 1000; ++i) siblings += "[],";
    EXPECT_TRUE(parse_json(siblings + "0]", "x.json"));
}

TEST(ParseJson, LargeObjectsZeroBytesAndLongTokensAreRefusedShortly) {
    std::string members = "{";
    for (int i = 0; i < kMaxJsonMembers; ++i) members += fmt::format("\"k{}\":{{\"a:b\":0}},", i);
    EXPECT_TRUE(parse_json(members.substr(0, members.size() - 1) + "}", "x.json"));
    EXPECT_THAT(error_of(members + "\"one\":1}"), HasSubstr("more than 10000 members"));
    EXPECT_THAT(error_of(std::string("{}\0garbage", 10)), HasSubstr("zero byte"));
    const std::string error = error_of("{\"a\": \"" + std::string(1'000'000, '\xC3'));
    EXPECT_LT(error.size(), 300U);
    for (const char c : error) EXPECT_TRUE(c >= 0x20 && c <= 0x7E);
}

TEST(ParseJson, HugeNumbers) {
    EXPECT_THAT(error_of("1e999"), HasSubstr("invalid JSON: "));
    EXPECT_THAT(error_of("[-1e400]"), HasSubstr("invalid JSON: "));
    const auto tiny = parse_json("1e-999", "x.json");
    ASSERT_TRUE(tiny);
    EXPECT_EQ(tiny->get<double>(), 0.0);
    // model_max_length of many a tokenizer_config.json.
    const auto object =
        parse_json(R"({"n":1000000000000000019884624838656,"digits":)" + std::string(300, '9') + "}", "x.json");
    ASSERT_TRUE(object) << object.error().text;
    EXPECT_EQ(json_number(*object, "n", "x.json").value(), 1e30);
    EXPECT_FALSE(json_int(*object, "n", "x.json"));
    EXPECT_TRUE(std::isfinite(json_number(*object, "digits", "x.json").value()));
}

// As in Python's reader, the last of equal names counts, at the place of the first.
TEST(ParseJson, LastOfEqualNamesCounts) {
    const auto parsed = parse_json(R"({"a":1,"b":2,"a":3})", "x.json");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(dump_json(*parsed), R"({"a":3,"b":2})");
}

class JsonFields : public ::testing::Test {
protected:
    void SetUp() override {
        const auto parsed =
            parse_json(R"({"int":-7,"big":9223372036854775807,"bigger":9223372036854775808,"whole":4096.0,"half":0.5,)"
                       R"("far":9007199254740993.0,"yes":true,"text":"t","null":null,"list":[1,2],"zero":-0.0})",
                       "x.json");
        ASSERT_TRUE(parsed) << parsed.error().text;
        object_ = *parsed;
    }
    Json object_;
};

TEST_F(JsonFields, Integers) {
    EXPECT_EQ(json_int(object_, "int", "x").value(), -7);
    EXPECT_EQ(json_int(object_, "big", "x").value(), INT64_MAX);
    EXPECT_EQ(json_int(object_, "whole", "x").value(), 4096);
    EXPECT_EQ(json_int(object_, "zero", "x").value(), 0);
    EXPECT_EQ(json_int_or(object_, "absent", 5, "x").value(), 5);
    EXPECT_EQ(json_int_or(object_, "null", 5, "x").value(), 5);
    EXPECT_EQ(json_int(object_, "bigger", "x").error().text,
              "x: field 'bigger': expected a 64-bit integer, got number (9223372036854775808)");
    EXPECT_EQ(json_int(object_, "half", "x").error().text, "x: field 'half': expected an integer, got number (0.5)");
    EXPECT_FALSE(json_int(object_, "far", "x"));  // beyond what a double holds exactly
    EXPECT_FALSE(json_int(object_, "yes", "x"));
    EXPECT_FALSE(json_int_or(object_, "text", 5, "x"));
    EXPECT_EQ(json_int(object_, "absent", "x").error().text, "x: field 'absent' is missing");
    EXPECT_EQ(json_int(object_, "null", "x").error().text, "x: field 'null' is missing");
}

TEST_F(JsonFields, NumbersBoolsStrings) {
    EXPECT_EQ(json_number(object_, "half", "x").value(), 0.5);
    EXPECT_EQ(json_number(object_, "int", "x").value(), -7.0);
    EXPECT_EQ(json_number_or(object_, "absent", 1.5, "x").value(), 1.5);
    EXPECT_FALSE(json_number(object_, "text", "x"));
    EXPECT_EQ(json_bool_or(object_, "yes", false, "x").value(), true);
    EXPECT_EQ(json_bool_or(object_, "absent", true, "x").value(), true);
    EXPECT_EQ(json_bool_or(object_, "int", true, "x").error().text,
              "x: field 'int': expected true or false, got number (-7)");
    EXPECT_EQ(json_string(object_, "text", "x").value(), "t");
    EXPECT_EQ(json_string_or(object_, "null", "d", "x").value(), "d");
    EXPECT_EQ(json_string(object_, "list", "x").error().text, "x: field 'list': expected a string, got array ([1,2])");
    // An infinite number can only come from our own code, and is refused there, too.
    object_["inf"] = INFINITY;
    EXPECT_THAT(json_number(object_, "inf", "x").error().text, HasSubstr("expected a finite number"));
}

TEST_F(JsonFields, OnlyObjectsHaveFields) {
    for (const std::string_view text : {"[]", "1", "null", "\"int\""}) {
        const auto parsed = parse_json(text, "x");
        ASSERT_TRUE(parsed);
        EXPECT_THAT(json_int_or(*parsed, "int", 1, "x").error().text, HasSubstr("x: expected a JSON object, got"))
            << text;
    }
}

TEST(DumpJson, ReplacesInvalidUtf8AndEscapes) {
    EXPECT_EQ(dump_json(Json("a\xFF"
                             "b")),
              "\"a\xEF\xBF\xBD"
              "b\"");
    EXPECT_EQ(dump_json(Json("line\n\x01\"")), R"("line\n\u0001\"")");
    EXPECT_EQ(dump_json(Json(NAN)), "null");
}

}  // namespace
}  // namespace frontier
