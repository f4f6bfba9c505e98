module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x9x8x3xf32>) -> (tensor<2x9x8x3xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %29 : tensor<f32>
    }) : (tensor<2x9x8x3xf32>, tensor<f32>) -> tensor<2x4x4x3xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4x4x3xf32>
    %3 = stablehlo.multiply %2, %1 : tensor<2x4x4x3xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%arg0, %4) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %29 : tensor<f32>
    }) : (tensor<2x9x8x3xf32>, tensor<f32>) -> tensor<2x5x4x3xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x5x4x3xf32>
    %7 = stablehlo.multiply %6, %5 : tensor<2x5x4x3xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<f32>
    %9 = "stablehlo.reduce_window"(%arg0, %8) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %29 : tensor<f32>
    }) : (tensor<2x9x8x3xf32>, tensor<f32>) -> tensor<2x7x6x3xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x7x6x3xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<2x7x6x3xf32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x7x6x3xf32>
    %13 = stablehlo.multiply %12, %11 : tensor<2x7x6x3xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %14 = stablehlo.pad %arg0, %cst_6, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x9x8x3xf32>, tensor<f32>) -> tensor<2x9x8x3xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = "stablehlo.select_and_scatter"(%14, %13, %cst_7) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %29 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %29 : tensor<f32>
    }) : (tensor<2x9x8x3xf32>, tensor<2x7x6x3xf32>, tensor<f32>) -> tensor<2x9x8x3xf32>
    %16 = stablehlo.slice %15 [0:2, 0:9, 0:8, 0:3] : (tensor<2x9x8x3xf32>) -> tensor<2x9x8x3xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x5x4x3xf32>
    %18 = stablehlo.multiply %17, %7 : tensor<2x5x4x3xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %19 = stablehlo.pad %arg0, %cst_9, low = [0, 1, 0, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<2x9x8x3xf32>, tensor<f32>) -> tensor<2x11x9x3xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = "stablehlo.select_and_scatter"(%19, %18, %cst_10) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %29 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %29 : tensor<f32>
    }) : (tensor<2x11x9x3xf32>, tensor<2x5x4x3xf32>, tensor<f32>) -> tensor<2x11x9x3xf32>
    %21 = stablehlo.slice %20 [0:2, 1:10, 0:8, 0:3] : (tensor<2x11x9x3xf32>) -> tensor<2x9x8x3xf32>
    %22 = stablehlo.add %16, %21 : tensor<2x9x8x3xf32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x4x4x3xf32>
    %24 = stablehlo.multiply %23, %3 : tensor<2x4x4x3xf32>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25 = stablehlo.pad %arg0, %cst_12, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x9x8x3xf32>, tensor<f32>) -> tensor<2x9x8x3xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = "stablehlo.select_and_scatter"(%25, %24, %cst_13) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %29 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %29 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %29 : tensor<f32>
    }) : (tensor<2x9x8x3xf32>, tensor<2x4x4x3xf32>, tensor<f32>) -> tensor<2x9x8x3xf32>
    %27 = stablehlo.slice %26 [0:2, 0:9, 0:8, 0:3] : (tensor<2x9x8x3xf32>) -> tensor<2x9x8x3xf32>
    %28 = stablehlo.add %22, %27 : tensor<2x9x8x3xf32>
    return %28 : tensor<2x9x8x3xf32>
  }
}
